//! The counters of a limit that belongs to this process alone.

use jiff::Timestamp;

use super::BudgetWindow;
use crate::Budget;
use crate::bucket::Bucket;
use crate::limit::{Caps, Dimension};
use crate::money::Money;
use crate::request::{Level, Now, Remaining, Used};

/// The rates and the money of one scope.
#[derive(Debug)]
pub(super) struct LocalCounters {
    /// `None` without a cap, as `tokens`: nothing is counted then, and a cap begins full.
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    spending: BudgetSpending,
}

/// The money of the current window, and of the window before, to which a clock that is set forward
/// and back returns.
#[derive(Clone, Copy, Debug, Default)]
struct BudgetSpending {
    current: WindowSpending,
    before: WindowSpending,
}

/// The money of one window.
#[derive(Clone, Copy, Debug, Default)]
struct WindowSpending {
    /// The start and the end of the window, in milliseconds since the Unix epoch; 0 if there is no
    /// budget.
    starts_ms: i64,
    ends_ms: i64,
    spent: Money,
    /// The money that is reserved for requests in progress that were admitted in this window.
    reserved: Money,
}

impl LocalCounters {
    /// Creates full buckets, and a window of the budget in which nothing is spent.
    pub(super) fn new(caps: &Caps, now: Now) -> Self {
        let mut counters = Self {
            requests: None,
            tokens: None,
            spending: BudgetSpending::default(),
        };
        counters.refresh(caps, now);
        counters
    }

    /// Refills the rates, adapts them to changed caps, and begins a new window of the budget if the
    /// last one has ended.
    pub(super) fn refresh(&mut self, caps: &Caps, now: Now) {
        refill(&mut self.requests, caps.requests_per_minute, now);
        refill(&mut self.tokens, caps.tokens_per_minute, now);
        self.spending.refresh(caps.budget.as_ref(), now.unix_ms);
    }

    /// Returns the first dimension that has no room for a request, and after how many microseconds
    /// it would have room.
    pub(super) fn first_exceeded(
        &self,
        budget: Option<&Budget>,
        tokens: u64,
        money: Money,
    ) -> Option<(Dimension, Option<u64>)> {
        if let Some(budget) = budget
            && !self.spending.has_room(budget, money)
        {
            return Some((Dimension::Budget, None));
        }
        if let Some(requests) = &self.requests
            && !requests.holds(1)
        {
            return Some((Dimension::Requests, Some(requests.until(1))));
        }
        if let Some(bucket) = &self.tokens
            && !bucket.holds(tokens)
        {
            return Some((Dimension::Tokens, Some(bucket.until(tokens))));
        }
        None
    }

    /// Counts a request, and reserves the tokens and the money that it may use. Returns the window of
    /// the budget.
    pub(super) fn take(&mut self, tokens: u64, money: Money) -> BudgetWindow {
        if let Some(requests) = &mut self.requests {
            requests.take(1);
        }
        if let Some(bucket) = &mut self.tokens {
            bucket.take(tokens);
        }
        let current = &mut self.spending.current;
        current.reserved = current.reserved.saturating_add(money);
        BudgetWindow(current.ends_ms)
    }

    /// Replaces the reservation of a request by its usage. Money counts in the window in which the
    /// request was admitted, even if that window has ended.
    pub(super) fn settle(
        &mut self,
        (tokens, money): (u64, Money),
        window: BudgetWindow,
        used: Used,
    ) {
        if let Some(bucket) = &mut self.tokens {
            bucket.release(tokens);
            bucket.take(used.tokens);
        }
        let BudgetSpending { current, before } = &mut self.spending;
        let mut windows = [current, before].into_iter();
        if let Some(admitted) = windows.find(|at| window == BudgetWindow(at.ends_ms)) {
            admitted.reserved = admitted.reserved.saturating_sub(money);
            admitted.spent = admitted.spent.saturating_add(used.money);
        }
    }

    /// Adds to the money that was spent in the current window.
    pub(super) fn add_spent(&mut self, money: Money) {
        let current = &mut self.spending.current;
        current.spent = current.spent.saturating_add(money);
    }

    /// Returns true if the counters do not differ from new ones. `caps` is `None` if the limit was
    /// removed.
    pub(super) fn is_unused(&self, caps: Option<&Caps>) -> bool {
        let is_full = |bucket: &Option<Bucket>| bucket.as_ref().is_none_or(Bucket::is_full);
        caps.is_none_or(|caps| {
            is_full(&self.requests)
                && is_full(&self.tokens)
                && (caps.budget.is_none() || self.spending.is_zero())
        })
    }

    /// Returns the rest of the rates.
    pub(super) fn remaining(&self) -> Remaining {
        let level = |bucket: &Bucket| Level {
            limit: bucket.per_minute(),
            remaining: bucket.remaining(),
            reset: bucket.until_full(),
        };
        Remaining {
            requests: self.requests.as_ref().map(level),
            tokens: self.tokens.as_ref().map(level),
        }
    }

    /// Returns the money that was spent in the current window.
    pub(super) fn spent(&self) -> Money {
        self.spending.current.spent
    }

    /// Returns the money that is reserved for requests that were admitted in the current window.
    pub(super) fn reserved(&self) -> Money {
        self.spending.current.reserved
    }
}

/// Refills a rate. One whose cap has changed keeps its use.
fn refill(bucket: &mut Option<Bucket>, cap: Option<u64>, now: Now) {
    match (bucket.as_mut(), cap) {
        (Some(filled), Some(cap)) => filled.fill(cap, now.monotonic),
        (None, Some(cap)) => *bucket = Some(Bucket::full(cap, now.monotonic)),
        (_, None) => *bucket = None,
    }
}

impl BudgetSpending {
    fn refresh(&mut self, budget: Option<&Budget>, unix_ms: i64) {
        let Some(budget) = budget else { return };
        if self.current.has(unix_ms) {
            return;
        }
        let before = std::mem::replace(&mut self.before, self.current);
        self.current = before;
        if !before.has(unix_ms) {
            let now = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::MAX);
            let period = budget.period(now);
            self.current = WindowSpending {
                starts_ms: period.start.as_millisecond(),
                ends_ms: period.end.as_millisecond(),
                ..WindowSpending::default()
            };
        }
    }

    fn is_zero(&self) -> bool {
        self.current.spent == Money::ZERO && self.before.spent == Money::ZERO
    }

    /// Returns true if the budget is not used up, and `money` more is within it. A request that may
    /// cost more than the rest of the budget is admitted while nothing is reserved, and then no
    /// other request is admitted until its end: otherwise the last part of a budget could never be
    /// spent. So a budget is overdrawn by one request at most.
    fn has_room(&self, budget: &Budget, money: Money) -> bool {
        let WindowSpending {
            spent, reserved, ..
        } = self.current;
        let taken = spent.saturating_add(reserved);
        let is_alone = reserved == Money::ZERO;
        taken < budget.amount && (is_alone || taken.saturating_add(money) <= budget.amount)
    }
}

impl WindowSpending {
    fn has(&self, unix_ms: i64) -> bool {
        (self.starts_ms..self.ends_ms).contains(&unix_ms)
    }
}
