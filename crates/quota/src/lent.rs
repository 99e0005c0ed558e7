//! The holdings of one scope of a limit that a store lends to several replicas.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use smallvec::SmallVec;

use crate::budget::Budget;
use crate::exchange::{Ask, Loan, Reply};
use crate::holding::{Holding, Lending, Taken};
use crate::limit::{Caps, Dimension};
use crate::money::Money;
use crate::request::{Level, Now, Remaining, Used};

/// The holdings of one scope: one for each part of the limit that has a cap.
#[derive(Debug)]
pub(crate) struct Lent {
    /// The name of the scope in the store.
    name: Arc<str>,
    lending: Lending,
    caps: Caps,
    permits: Option<Lane>,
    requests: Option<Lane>,
    tokens: Option<Lane>,
    /// The current window comes last. Earlier ones stay until their requests have ended and the
    /// store knows what these have spent.
    budgets: SmallVec<[Window; 1]>,
}

/// A holding, and what the store has reported of it last.
#[derive(Debug)]
struct Lane {
    holding: Holding,
    /// The amount that could be lent to any replica.
    free: u64,
    /// The amount spent that has not flowed off.
    level: u64,
}

/// The holding of one window of a budget.
#[derive(Debug)]
struct Window {
    /// The end of the window, in milliseconds since the Unix epoch.
    ends_ms: i64,
    /// The money that was spent before this replica began.
    accounted: Money,
    lane: Lane,
}

/// The identity of a holding within its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneId {
    Permits,
    Requests,
    Tokens,
    /// That of the window with this end.
    Budget(i64),
}

/// The amounts that a request has taken from the holdings of a scope.
pub(crate) type LentTaken = SmallVec<[(LaneId, Taken); 4]>;

/// A holding that has too little for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) dimension: Dimension,
    /// The microseconds in which the missing amount flows off, for rates.
    pub(crate) retry_after: Option<u64>,
    /// True if the store may lend more. False if it did not answer the last ask, or has said a short
    /// time ago that it may have forgotten what it has lent.
    pub(crate) may_wait: bool,
    /// True if the store lends nothing, as far as is known.
    pub(crate) is_degraded: bool,
}

impl Lent {
    /// Creates empty holdings for the caps of a scope.
    pub(crate) fn new(limit: &str, scope: &str, caps: &Caps, lending: Lending, now: Now) -> Self {
        let mut lent = Self {
            name: format!("{limit}/{scope}").into(),
            lending,
            caps: Caps::default(),
            permits: None,
            requests: None,
            tokens: None,
            budgets: SmallVec::new(),
        };
        lent.refresh(caps, now);
        lent
    }

    /// Adapts the holdings to changed caps, and begins a new window of the budget if the last one
    /// has ended.
    pub(crate) fn refresh(&mut self, caps: &Caps, now: Now) {
        if self.caps != *caps {
            let permits = caps.concurrency.map(|cap| Loan::Permits { cap });
            let [requests, tokens] =
                [caps.requests_per_minute, caps.tokens_per_minute].map(|cap| {
                    let per_minute = micro(cap?);
                    Some(Loan::Bucket {
                        per_minute,
                        capacity: per_minute,
                    })
                });
            let before = [
                self.permits.take(),
                self.requests.take(),
                self.tokens.take(),
            ];
            let [old_permits, old_requests, old_tokens] = before;
            self.permits = self.lane(old_permits, permits, "concurrency");
            self.requests = self.lane(old_requests, requests, "requests");
            self.tokens = self.lane(old_tokens, tokens, "tokens");
            self.caps = caps.clone();
        }
        if let Some(budget) = &caps.budget {
            self.refresh_budget(budget, now.unix_ms);
        }
    }

    fn refresh_budget(&mut self, budget: &Budget, unix_ms: i64) {
        if self
            .budgets
            .last()
            .is_some_and(|window| unix_ms < window.ends_ms)
        {
            return;
        }
        let now = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::MAX);
        let period = budget.period(now);
        let loan = Loan::Budget {
            amount: nanos(budget.amount),
            window: u64::try_from(period.start.as_second()).unwrap_or(0),
            accounted: 0,
        };
        if let Some(lane) = self.lane(None, Some(loan), "budget") {
            self.budgets.push(Window {
                ends_ms: period.end.as_millisecond(),
                accounted: Money::ZERO,
                lane,
            });
        }
    }

    /// Returns the holding of a loan: that of before with these terms, or a new one.
    fn lane(&self, before: Option<Lane>, loan: Option<Loan>, part: &str) -> Option<Lane> {
        let loan = loan?;
        Some(match before {
            Some(mut lane) => {
                lane.holding.set_terms(loan, self.lending.mode);
                lane
            }
            None => Lane {
                holding: Holding::new(
                    format!("{}/{part}", self.name).into(),
                    loan,
                    self.lending.mode,
                    self.lending.lease,
                ),
                free: 0,
                level: 0,
            },
        })
    }

    /// Takes what a request needs from all holdings, or nothing.
    ///
    /// # Errors
    /// Returns the first part of the limit that has too little.
    pub(crate) fn take(&mut self, tokens: u64, money: Money, now: Now) -> Result<LentTaken, Short> {
        let mut taken = LentTaken::new();
        let current = self
            .budgets
            .last()
            .map(|window| LaneId::Budget(window.ends_ms));
        let needs = [
            (Some(LaneId::Permits), 1),
            // Not even a request that costs nothing is admitted once a budget is used up.
            (current, nanos(money).max(1)),
            (Some(LaneId::Requests), micro(1)),
            (Some(LaneId::Tokens), micro(tokens)),
        ];
        for (id, amount) in needs {
            let Some(id) = id else { continue };
            let Some(lane) = self.find(id) else { continue };
            let Some(part) = lane.holding.take(amount, at(now)) else {
                let short = Short {
                    dimension: id.dimension(),
                    retry_after: lane.flows_off(amount),
                    may_wait: lane.holding.may_lend(at(now)),
                    is_degraded: !lane.lends(),
                };
                self.give_back(taken);
                return Err(short);
            };
            taken.push((id, part));
        }
        Ok(taken)
    }

    /// Gives back what was taken, as if it had never been taken.
    pub(crate) fn give_back(&mut self, taken: LentTaken) {
        for (id, part) in taken {
            if let Some(lane) = self.find(id) {
                lane.holding.give_back(part);
            }
        }
    }

    /// Replaces what was reserved for a request by what it used.
    pub(crate) fn settle(&mut self, taken: LentTaken, used: Used) {
        for (id, part) in taken {
            let spent = match id {
                LaneId::Permits => 0,
                LaneId::Requests => part.amount,
                LaneId::Tokens => micro(used.tokens),
                LaneId::Budget(_) => nanos(used.money),
            };
            if let Some(lane) = self.find(id) {
                lane.holding.settle(part, spent);
            }
        }
    }

    /// Adds money that was spent before this replica began.
    pub(crate) fn add_spent(&mut self, money: Money) {
        if let Some(window) = self.budgets.last_mut() {
            window.accounted = window.accounted.saturating_add(money);
            window.lane.holding.set_accounted(nanos(window.accounted));
        }
    }

    /// Adds the asks that have to be sent now.
    pub(crate) fn poll(&mut self, now: Now, mut add: impl FnMut(LaneId, Ask)) {
        let last = self.budgets.len().saturating_sub(1);
        let mut position = 0;
        self.budgets.retain(|window| {
            position += 1;
            position > last || !window.lane.holding.is_dormant()
        });
        for (id, lane) in self.lanes() {
            if let Some(ask) = lane.holding.poll(at(now)) {
                add(id, ask);
            }
        }
    }

    /// Applies the reply to an ask; `None` if there was none.
    pub(crate) fn granted(&mut self, id: LaneId, ask: &Ask, reply: Option<&Reply>, now: Now) {
        // The slot may have been given to another scope since.
        if !ask.limit.starts_with(&*self.name) {
            return;
        }
        let Some(lane) = self.find(id) else { return };
        match reply {
            // A reply with another number refuses the ask, because it came too late.
            Some(reply) if reply.seq == ask.seq => {
                lane.holding.granted(reply, at(now));
                (lane.free, lane.level) = (reply.free, reply.level);
            }
            _ => lane.holding.failed(ask.seq, at(now)),
        }
    }

    /// Returns true if requests wait for something that is not being asked for.
    pub(crate) fn is_waiting(&mut self) -> bool {
        self.lanes().any(|(_, lane)| lane.holding.is_waiting())
    }

    /// Applies a notice of another replica about the limit of a holding.
    pub(crate) fn noticed(&mut self, key: &str) {
        for (_, lane) in self.lanes() {
            if lane.holding.is_of(key) {
                lane.holding.noticed();
            }
        }
    }

    /// Returns true if nothing is in use, and the store knows everything.
    pub(crate) fn is_dormant(&mut self) -> bool {
        self.lanes().all(|(_, lane)| lane.holding.is_dormant())
    }

    /// Returns true if the store lends nothing for a holding: it does not answer, or may have forgotten
    /// what it has lent.
    pub(crate) fn is_degraded(&mut self) -> bool {
        self.lanes().any(|(_, lane)| !lane.lends())
    }

    /// Returns the money that all replicas have spent in the current window, as the store has
    /// reported it last.
    pub(crate) fn spent(&self) -> Money {
        let level = self.budgets.last().map_or(0, |window| window.lane.level);
        Money::from_nanos(i64::try_from(level).unwrap_or(i64::MAX))
    }

    /// Returns what is left of the rates: what this replica holds, and what the store could lend
    /// when it was asked last.
    pub(crate) fn remaining(&self) -> Remaining {
        let level = |lane: &Option<Lane>, cap: Option<u64>| {
            let (lane, cap) = lane.as_ref().zip(cap)?;
            let left = lane.holding.available().saturating_add(lane.free);
            let left = left.min(micro(cap));
            Some(Level {
                limit: cap,
                remaining: left / MICRO,
                reset: (micro(cap) - left).saturating_mul(60) / cap.max(1),
            })
        };
        Remaining {
            requests: level(&self.requests, self.caps.requests_per_minute),
            tokens: level(&self.tokens, self.caps.tokens_per_minute),
        }
    }

    fn find(&mut self, id: LaneId) -> Option<&mut Lane> {
        match id {
            LaneId::Permits => self.permits.as_mut(),
            LaneId::Requests => self.requests.as_mut(),
            LaneId::Tokens => self.tokens.as_mut(),
            LaneId::Budget(ends_ms) => {
                let mut windows = self.budgets.iter_mut();
                let window = windows.find(|window| window.ends_ms == ends_ms)?;
                Some(&mut window.lane)
            }
        }
    }

    fn lanes(&mut self) -> impl Iterator<Item = (LaneId, &mut Lane)> {
        let lane = |id: LaneId| move |lane| (id, lane);
        let budgets = self.budgets.iter_mut();
        let permits = self.permits.iter_mut().map(lane(LaneId::Permits));
        let requests = self.requests.iter_mut().map(lane(LaneId::Requests));
        let tokens = self.tokens.iter_mut().map(lane(LaneId::Tokens));
        let budgets = budgets.map(|window| (LaneId::Budget(window.ends_ms), &mut window.lane));
        permits.chain(requests).chain(tokens).chain(budgets)
    }
}

impl Lane {
    /// Returns true if the store lends: it has answered, and knows what it has lent.
    fn lends(&self) -> bool {
        !self.holding.is_degraded() && !self.holding.is_quarantined()
    }

    /// Returns the microseconds in which an amount flows off; `None` if nothing does.
    fn flows_off(&self, amount: u64) -> Option<u64> {
        let per_minute = self.holding.loan().per_minute();
        (per_minute > 0).then(|| amount.saturating_mul(60).saturating_mul(MICRO) / per_minute)
    }
}

impl LaneId {
    fn dimension(self) -> Dimension {
        match self {
            Self::Permits => Dimension::Concurrency,
            Self::Requests => Dimension::Requests,
            Self::Tokens => Dimension::Tokens,
            Self::Budget(_) => Dimension::Budget,
        }
    }
}

fn at(now: Now) -> Duration {
    Duration::from_micros(now.monotonic)
}

fn micro(units: u64) -> u64 {
    units.saturating_mul(MICRO)
}

fn nanos(money: Money) -> u64 {
    u64::try_from(money.nanos()).unwrap_or(0)
}

const MICRO: u64 = 1_000_000;
