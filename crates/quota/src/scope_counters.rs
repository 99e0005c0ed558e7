//! The counts of one scope of a limit.

use std::sync::Arc;

use jiff::Timestamp;

use crate::Budget;
use crate::bucket::Bucket;
use crate::leased_limit::{LeasedAmounts, LeasedLimit};
use crate::limit::{Caps, Dimension, Terms};
use crate::money::Money;
use crate::request::{Level, LimitId, Now, Remaining, Used};

/// The counts of one scope of a limit.
#[derive(Debug)]
pub(crate) struct ScopeCounters {
    pub(crate) limit: LimitId,
    pub(crate) scope: Arc<str>,
    in_use: u64,
    /// The admissions that have not ended, including requests that go on without a place.
    admissions: u64,
    /// The shares, if the limit is leased. Rates and money are counted there then, and not here.
    pub(crate) lent: Option<Box<LeasedLimit>>,
    requests: Bucket,
    tokens: Bucket,
    spending: BudgetSpending,
    typical_answer: TypicalAnswer,
}

/// The window of a budget in which a request was admitted, by its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BudgetWindow(i64);

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

impl ScopeCounters {
    /// Creates the counters of a scope in which nothing is used.
    pub(crate) fn new(
        limit: LimitId,
        name: &str,
        scope: Arc<str>,
        terms: &Terms,
        now: Now,
    ) -> Self {
        let Terms { caps, lending } = terms;
        let lent = |lending| Box::new(LeasedLimit::new(name, &scope, caps, lending, now));
        let lent = lending.map(lent);
        let full = |cap: Option<u64>| Bucket::full(cap.unwrap_or(0), now.monotonic);
        let mut slot = Self {
            limit,
            scope,
            in_use: 0,
            admissions: 0,
            lent,
            requests: full(caps.requests_per_minute),
            tokens: full(caps.tokens_per_minute),
            spending: BudgetSpending::default(),
            typical_answer: TypicalAnswer::default(),
        };
        slot.spending.refresh(caps.budget.as_ref(), now.unix_ms);
        slot
    }

    /// Refills the rates, and begins a new window of the budget if the last one has ended. `caps`
    /// is `None` if the limit was removed.
    pub(crate) fn refresh(&mut self, caps: Option<&Caps>, now: Now) {
        let Some(caps) = caps else { return };
        if let Some(lent) = &mut self.lent {
            return lent.refresh(caps, now);
        }
        if let Some(cap) = caps.requests_per_minute {
            self.requests.fill(cap, now.monotonic);
        }
        if let Some(cap) = caps.tokens_per_minute {
            self.tokens.fill(cap, now.monotonic);
        }
        self.spending.refresh(caps.budget.as_ref(), now.unix_ms);
    }

    /// Returns the tokens to reserve for a demand: at most a quarter of the limit, so that one
    /// large request can be admitted, and several can be at the same time.
    pub(crate) fn reservation(&self, caps: &Caps, tokens: u64) -> u64 {
        caps.tokens_per_minute
            .map_or(0, |cap| tokens.min(cap.div_ceil(MAX_FRACTION)))
    }

    /// Returns the first dimension that has no room for a request, and after how many microseconds
    /// it would have room.
    pub(crate) fn first_exceeded(
        &self,
        caps: &Caps,
        tokens: u64,
        money: Money,
    ) -> Option<(Dimension, Option<u64>)> {
        if self.lent.is_some() {
            // For a leased limit, that is known when the amounts are taken.
            return None;
        }
        if caps.concurrency.is_some_and(|cap| self.in_use >= cap) {
            return Some((Dimension::Concurrency, None));
        }
        if let Some(budget) = &caps.budget
            && !self.spending.has_room(budget, money)
        {
            return Some((Dimension::Budget, None));
        }
        if let Some(cap) = caps.requests_per_minute
            && !self.requests.holds(1)
        {
            return Some((Dimension::Requests, Some(self.requests.until(1, cap))));
        }
        if let Some(cap) = caps.tokens_per_minute
            && !self.tokens.holds(tokens)
        {
            return Some((Dimension::Tokens, Some(self.tokens.until(tokens, cap))));
        }
        None
    }

    /// Counts a request, and reserves the tokens and the money that it may use. Returns the budget
    /// window in which it is counted.
    pub(crate) fn take(&mut self, tokens: u64, money: Money) -> BudgetWindow {
        self.in_use += 1;
        self.admissions += 1;
        if self.lent.is_none() {
            self.requests.take(1);
            self.tokens.take(tokens);
            let current = &mut self.spending.current;
            current.reserved = current.reserved.saturating_add(money);
        }
        BudgetWindow(self.spending.current.ends_ms)
    }

    /// Releases the place of a request that goes on without one, and keeps its reservation.
    pub(crate) fn release_place(&mut self, taken: Option<&mut LeasedAmounts>) {
        self.in_use = self.in_use.saturating_sub(1);
        if let (Some(lent), Some(taken)) = (&mut self.lent, taken) {
            lent.release_place(taken);
        }
    }

    /// Ends a request that has released its place: its usage replaces its reservation. Money counts
    /// in the window in which the request was admitted, even if that window has ended.
    pub(crate) fn settle(
        &mut self,
        (tokens, money): (u64, Money),
        window: BudgetWindow,
        used: Used,
        taken: Option<LeasedAmounts>,
    ) {
        self.admissions = self.admissions.saturating_sub(1);
        self.typical_answer.observe(used.answer_tokens);
        if let (Some(lent), Some(taken)) = (&mut self.lent, taken) {
            return lent.settle(taken, used);
        }
        self.tokens.release(tokens);
        self.tokens.take(used.tokens);
        let BudgetSpending { current, before } = &mut self.spending;
        let mut windows = [current, before].into_iter();
        if let Some(admitted) = windows.find(|at| window == BudgetWindow(at.ends_ms)) {
            admitted.reserved = admitted.reserved.saturating_sub(money);
            admitted.spent = admitted.spent.saturating_add(used.money);
        }
    }

    /// Adds to the money that was spent in the current window.
    pub(crate) fn add_spent(&mut self, money: Money) {
        if let Some(lent) = &mut self.lent {
            return lent.add_spent(money);
        }
        let current = &mut self.spending.current;
        current.spent = current.spent.saturating_add(money);
    }

    /// Returns true if the limit is leased and one of its shares should be polled now.
    pub(crate) fn is_due(&self) -> bool {
        self.lent
            .as_ref()
            .is_some_and(|lent| lent.should_exchange())
    }

    /// Returns true if the limit is leased and its store grants nothing now.
    pub(crate) fn is_degraded(&self) -> bool {
        self.lent.as_ref().is_some_and(|lent| lent.is_degraded())
    }

    /// Returns true if the counters do not differ from new ones.
    pub(crate) fn is_idle(&mut self, caps: Option<&Caps>) -> bool {
        if let Some(lent) = &mut self.lent {
            return self.admissions == 0 && lent.is_unused();
        }
        let is_full = |bucket: &Bucket, cap: Option<u64>| cap.is_none_or(|cap| bucket.holds(cap));
        self.admissions == 0
            && caps.is_none_or(|caps| {
                is_full(&self.requests, caps.requests_per_minute)
                    && is_full(&self.tokens, caps.tokens_per_minute)
                    && (caps.budget.is_none() || self.spending.is_zero())
            })
    }

    pub(crate) fn remaining(&self, caps: &Caps) -> Remaining {
        if let Some(lent) = &self.lent {
            return lent.remaining();
        }
        let level = |bucket: &Bucket, cap: u64| Level {
            limit: cap,
            remaining: bucket.remaining(),
            reset: bucket.until(cap, cap),
        };
        Remaining {
            requests: caps
                .requests_per_minute
                .map(|cap| level(&self.requests, cap)),
            tokens: caps.tokens_per_minute.map(|cap| level(&self.tokens, cap)),
        }
    }

    pub(crate) fn in_use(&self) -> u64 {
        self.in_use
    }

    pub(crate) fn spent(&self) -> Money {
        let lent = self.lent.as_ref();
        lent.map_or(self.spending.current.spent, |lent| lent.spent())
    }

    pub(crate) fn reserved(&self) -> Money {
        self.spending.current.reserved
    }

    /// Returns the tokens that answers rarely exceed, if any answer has ended.
    pub(crate) fn typical_answer(&self) -> Option<u64> {
        self.typical_answer.get()
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

/// An estimate of the 95th percentile of the lengths of answers, in tokens, that takes no more
/// memory than one number. It follows the lengths in small steps: up by 19 twentieths of a step for
/// a longer answer, down by one twentieth for a shorter one, so that it rests where one answer of
/// twenty is longer.
#[derive(Clone, Copy, Debug, Default)]
struct TypicalAnswer(u64);

impl TypicalAnswer {
    fn get(self) -> Option<u64> {
        (self.0 > 0).then_some(self.0)
    }

    fn observe(&mut self, tokens: u64) {
        let step = (self.0 / 8).max(20);
        self.0 = match self.0 {
            _ if tokens == 0 => self.0,
            0 => tokens,
            estimate if tokens > estimate => estimate.saturating_add(step / 20 * 19).min(tokens),
            estimate => (estimate - step / 20).max(tokens),
        };
    }
}

/// The part of a limit that one request may reserve: one of so many.
const MAX_FRACTION: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the lengths 1 to 1,000 in a random order, 5 % are above 950.
    #[test]
    fn the_typical_answer_comes_to_the_95th_percentile() {
        let mut typical = TypicalAnswer::default();
        let mut state = 1_u64;
        let mut sum = 0;
        for turn in 0..40_000 {
            // A full period of a linear congruential generator modulo 2^16.
            state = (state * 25_173 + 13_849) % 65_536;
            typical.observe(1 + state * 1_000 / 65_536);
            sum += if turn >= 20_000 { typical.0 } else { 0 };
        }
        let mean = sum / 20_000;
        assert!((900..=990).contains(&mean), "{mean}");
    }

    #[test]
    fn the_typical_answer_moves_in_small_steps() {
        let after = |tokens| {
            let mut typical = TypicalAnswer(800);
            typical.observe(tokens);
            typical.get()
        };
        // A step is an eighth: longer answers add 19 twentieths of it, shorter ones subtract one
        // twentieth.
        assert_eq!((after(5_000), after(850)), (Some(895), Some(850)));
        assert_eq!((after(1), after(798)), (Some(795), Some(798)));
        assert_eq!(after(800), Some(800));
    }

    #[test]
    fn answers_of_unknown_length_teach_nothing() {
        let mut typical = TypicalAnswer::default();
        typical.observe(0);
        assert_eq!(typical.get(), None);
        typical.observe(300);
        typical.observe(0);
        assert_eq!(typical.get(), Some(300));
    }
}
