//! The counters of one scope of a limit.

mod local;
mod typical_answer;

use std::sync::Arc;

use self::local::LocalCounters;
use self::typical_answer::TypicalAnswer;
use crate::leased_limit::{LeasedAmounts, LeasedLimit};
use crate::limit::{Caps, Dimension, Terms};
use crate::money::Money;
use crate::request::{LimitId, Now, Remaining, Used};

/// The counters of one scope of a limit.
#[derive(Debug)]
pub(crate) struct ScopeCounters {
    pub(crate) limit: LimitId,
    pub(crate) scope: Arc<str>,
    in_use: u64,
    /// The admissions that have not ended, including requests that go on without a place.
    admissions: u64,
    typical_answer: TypicalAnswer,
    counters: Counters,
}

/// The counters of rates and money, and of permits if the limit is leased.
#[derive(Debug)]
enum Counters {
    /// The limit belongs to this process alone.
    Local(LocalCounters),
    /// The limit is leased from a store that several replicas share.
    Leased(Box<LeasedLimit>),
}

/// The window of a budget in which a request was admitted, by its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BudgetWindow(i64);

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
        let counters = match *lending {
            None => Counters::Local(LocalCounters::new(caps, now)),
            Some(settings) => {
                let leased = LeasedLimit::new(name, &scope, caps, settings, now);
                Counters::Leased(Box::new(leased))
            }
        };
        Self {
            limit,
            scope,
            in_use: 0,
            admissions: 0,
            typical_answer: TypicalAnswer::default(),
            counters,
        }
    }

    /// Returns the shares of the limit, if it is leased.
    pub(crate) fn leased(&self) -> Option<&LeasedLimit> {
        match &self.counters {
            Counters::Local(_) => None,
            Counters::Leased(leased) => Some(leased),
        }
    }

    /// Returns the shares of the limit, if it is leased.
    pub(crate) fn leased_mut(&mut self) -> Option<&mut LeasedLimit> {
        match &mut self.counters {
            Counters::Local(_) => None,
            Counters::Leased(leased) => Some(leased),
        }
    }

    /// Refills the rates, adapts the counters to changed terms, and begins a new window of the budget
    /// if the last one has ended. `terms` is `None` if the limit was removed.
    pub(crate) fn refresh(&mut self, terms: Option<&Terms>, now: Now) {
        let Some(Terms { caps, lending }) = terms else {
            return;
        };
        match (&mut self.counters, lending) {
            (Counters::Local(local), _) => local.refresh(caps, now),
            (Counters::Leased(leased), Some(lending)) => leased.refresh(caps, *lending, now),
            // A process has a lease store for all of its time.
            (Counters::Leased(_), None) => {}
        }
    }

    /// Returns the tokens to reserve for a demand: at most a quarter of the limit, so that one
    /// large request can be admitted, and several can be at the same time.
    pub(crate) fn reservation(&self, caps: &Caps, tokens: u64) -> u64 {
        caps.tokens_per_minute
            .map_or(0, |cap| tokens.min(cap.div_ceil(MAX_FRACTION)))
    }

    /// Returns the first dimension that has no room for a request, and after how many microseconds
    /// it would have room. For a leased limit, that is known when the amounts are taken.
    pub(crate) fn first_exceeded(
        &self,
        caps: &Caps,
        tokens: u64,
        money: Money,
    ) -> Option<(Dimension, Option<u64>)> {
        match &self.counters {
            Counters::Leased(_) => None,
            Counters::Local(_) if caps.concurrency.is_some_and(|cap| self.in_use >= cap) => {
                Some((Dimension::Concurrency, None))
            }
            Counters::Local(local) => local.first_exceeded(caps.budget.as_ref(), tokens, money),
        }
    }

    /// Counts a request, and reserves the tokens and the money that it may use. Returns the budget
    /// window in which it is counted.
    pub(crate) fn take(&mut self, tokens: u64, money: Money) -> BudgetWindow {
        self.in_use += 1;
        self.admissions += 1;
        match &mut self.counters {
            Counters::Local(local) => local.take(tokens, money),
            Counters::Leased(_) => BudgetWindow::default(),
        }
    }

    /// Releases the place of a request that goes on without one, and keeps its reservation.
    pub(crate) fn release_place(&mut self, taken: Option<&mut LeasedAmounts>) {
        self.in_use = self.in_use.saturating_sub(1);
        if let (Counters::Leased(leased), Some(taken)) = (&mut self.counters, taken) {
            leased.release_place(taken);
        }
    }

    /// Ends a request that has released its place: its usage replaces its reservation.
    pub(crate) fn settle(
        &mut self,
        reserved: (u64, Money),
        window: BudgetWindow,
        used: Used,
        taken: Option<LeasedAmounts>,
    ) {
        self.admissions = self.admissions.saturating_sub(1);
        self.typical_answer.observe(used.answer_tokens);
        match (&mut self.counters, taken) {
            (Counters::Local(local), _) => local.settle(reserved, window, used),
            (Counters::Leased(leased), Some(taken)) => leased.settle(taken, used),
            (Counters::Leased(_), None) => {}
        }
    }

    /// Adds to the money that was spent in the current window. For a leased limit, replaces the
    /// amount that is known outside of the lease store.
    pub(crate) fn add_spent(&mut self, money: Money) {
        match &mut self.counters {
            Counters::Local(local) => local.add_spent(money),
            Counters::Leased(leased) => leased.set_accounted(money),
        }
    }

    /// Returns true if the limit is leased and one of its shares should be polled now.
    pub(crate) fn is_due(&self) -> bool {
        self.leased().is_some_and(LeasedLimit::should_exchange)
    }

    /// Returns true if the limit is leased and its store grants nothing now.
    pub(crate) fn is_degraded(&self) -> bool {
        self.leased().is_some_and(LeasedLimit::is_degraded)
    }

    /// Returns true if the counters do not differ from new ones.
    pub(crate) fn is_idle(&self, caps: Option<&Caps>) -> bool {
        self.admissions == 0
            && match &self.counters {
                Counters::Local(local) => local.is_unused(caps),
                Counters::Leased(leased) => leased.is_unused(),
            }
    }

    pub(crate) fn remaining(&self) -> Remaining {
        match &self.counters {
            Counters::Local(local) => local.remaining(),
            Counters::Leased(leased) => leased.remaining(),
        }
    }

    pub(crate) fn in_use(&self) -> u64 {
        self.in_use
    }

    pub(crate) fn spent(&self) -> Money {
        match &self.counters {
            Counters::Local(local) => local.spent(),
            Counters::Leased(leased) => leased.spent(),
        }
    }

    /// Returns the money that is reserved here; the store knows what is reserved of a leased limit.
    pub(crate) fn reserved(&self) -> Money {
        match &self.counters {
            Counters::Local(local) => local.reserved(),
            Counters::Leased(_) => Money::ZERO,
        }
    }

    /// Returns the tokens that answers rarely exceed, if any answer has ended.
    pub(crate) fn typical_answer(&self) -> Option<u64> {
        self.typical_answer.get()
    }
}

/// The part of a limit that one request may reserve: one of so many.
const MAX_FRACTION: u64 = 4;
