//! The holdings of one scope of a limit that a store lends to several replicas.

mod loss;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use smallvec::SmallVec;

use crate::budget::Budget;
use crate::exchange::{Ask, Loan, Reply};
use crate::holding::{FailMode, Holding, Lending, LostLease, Taken};
use crate::limit::{Caps, Dimension, MICRO};
use crate::money::Money;
use crate::request::{Level, Now, Remaining, Used};

pub use self::loss::LeaseLoss;

/// The holdings of one scope: one for each part of the limit that has a cap.
#[derive(Debug)]
pub(crate) struct Lent {
    /// The name of the scope in the store.
    name: Arc<str>,
    lending: Lending,
    caps: Caps,
    /// Holdings of earlier budget windows stay until their requests have ended and the store knows
    /// the spending of these requests.
    lanes: Vec<Lane>,
    /// True if leases were lost with which requests have to end, since that was asked last.
    has_lost: bool,
}

/// A holding, and the last report of the store about it.
#[derive(Debug)]
struct Lane {
    id: LaneId,
    holding: Holding,
    /// The amount that could be lent to any replica.
    free: u64,
    /// The amount spent that has not flowed off.
    level: u64,
    /// The loss of the present lease; `None` if requests go on after it.
    loss: Option<LeaseLoss>,
}

/// The identity of a holding within its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneId {
    Permits,
    Requests,
    Tokens,
    /// The budget window with this end, in milliseconds since the Unix epoch.
    Budget(i64),
}

/// The amounts that a request has taken from the holdings of a scope.
pub(crate) type LentTaken = SmallVec<[(LaneId, Taken); 4]>;

/// The state of a lent part of a limit. Amounts are in the unit of its cap; budget amounts are in
/// nano-units of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LentPart {
    /// The part.
    pub dimension: Dimension,
    /// Its name in the store ([`Ask::key`]).
    pub key: String,
    /// The amount that this replica holds.
    pub held: u64,
    /// The amount that the store could lend to any replica, when it was asked last.
    pub free: u64,
}

/// A holding that has too little for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) dimension: Dimension,
    /// The microseconds in which the missing amount flows off, for rates.
    pub(crate) retry_after: Option<u64>,
    /// True if the store may lend more. False if it did not answer the last ask, or has said a
    /// short time ago that it may have forgotten its loans.
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
            lanes: Vec::new(),
            has_lost: false,
        };
        lent.refresh(caps, now);
        lent
    }

    /// Adapts the holdings to changed caps, and begins a new window of the budget if the last one
    /// has ended.
    pub(crate) fn refresh(&mut self, caps: &Caps, now: Now) {
        if self.caps != *caps {
            let permits = caps.concurrency.map(|cap| Loan::Permits { cap });
            let bucket = |cap| Loan::Bucket {
                per_minute: micro(cap),
                capacity: micro(cap),
            };
            self.set_loan(LaneId::Permits, permits);
            self.set_loan(LaneId::Requests, caps.requests_per_minute.map(bucket));
            self.set_loan(LaneId::Tokens, caps.tokens_per_minute.map(bucket));
            self.caps = caps.clone();
        }
        if let Some(budget) = &caps.budget {
            self.refresh_budget(budget, now.unix_ms);
        }
    }

    /// Lets the holding of a part of the limit have these terms, or removes it.
    fn set_loan(&mut self, id: LaneId, loan: Option<Loan>) {
        let mode = self.lending.mode;
        match (loan, self.find(id)) {
            (None, _) => self.lanes.retain(|lane| lane.id != id),
            (Some(loan), Some(lane)) => lane.holding.set_terms(loan, mode),
            (Some(loan), None) => self.add(id, loan),
        }
    }

    fn refresh_budget(&mut self, budget: &Budget, unix_ms: i64) {
        if matches!(self.current_budget(), Some(LaneId::Budget(ends_ms)) if unix_ms < ends_ms) {
            return;
        }
        let now = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::MAX);
        let period = budget.period(now);
        let loan = Loan::Budget {
            amount: nanos(budget.amount),
            window: u64::try_from(period.start.as_second()).unwrap_or(0),
            accounted: 0,
        };
        self.add(LaneId::Budget(period.end.as_millisecond()), loan);
    }

    /// Adds an empty holding.
    fn add(&mut self, id: LaneId, loan: Loan) {
        let name = format!("{}/{}", self.name, id.name());
        let Lending {
            mode,
            lease,
            lost_lease,
        } = self.lending;
        let mut holding = Holding::new(name.into(), loan, mode, lease);
        // An open limit admits more than its cap without a lease, so that it has no use for this.
        let ends_requests = lost_lease == LostLease::End && mode != FailMode::Open;
        let mut loss = None;
        if id == LaneId::Permits && ends_requests {
            holding = holding.ending_requests();
            loss = Some(LeaseLoss::default());
        }
        // Most limits keep the parts that they have.
        self.lanes.reserve_exact(1);
        self.lanes.push(Lane {
            id,
            holding,
            free: 0,
            level: 0,
            loss,
        });
    }

    /// Takes the amounts that a request needs from all holdings, or nothing.
    ///
    /// # Errors
    /// Returns the first part of the limit that has too little.
    pub(crate) fn take(&mut self, tokens: u64, money: Money, now: Now) -> Result<LentTaken, Short> {
        self.note_losses(now);
        let mut taken = LentTaken::new();
        let current = self.current_budget();
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
            let amount = lane.reservation(amount);
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

    /// Returns the loss of the lease with which requests have to end that are admitted now, if they
    /// have to.
    pub(crate) fn loss(&self) -> Option<&LeaseLoss> {
        self.lanes.iter().find_map(|lane| lane.loss.as_ref())
    }

    /// Returns true if leases were lost with which requests have to end, since the last call.
    pub(crate) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    /// Ends the requests whose lease is over. Requests that are admitted from now on have another one.
    fn note_losses(&mut self, now: Now) {
        for lane in &mut self.lanes {
            if let Some(loss) = &mut lane.loss
                && lane.holding.lost(at(now))
            {
                std::mem::take(loss).happen();
                self.has_lost = true;
            }
        }
    }

    /// Gives back the taken amounts, as if they had never been taken.
    pub(crate) fn give_back(&mut self, taken: LentTaken) {
        for (id, part) in taken {
            if let Some(lane) = self.find(id) {
                lane.holding.give_back(part);
            }
        }
    }

    /// Gives back the permit among the taken amounts, and leaves the rest.
    pub(crate) fn release_place(&mut self, taken: &mut LentTaken) {
        let place = taken.iter().position(|(id, _)| *id == LaneId::Permits);
        let Some(place) = place else { return };
        let (id, permit) = taken.remove(place);
        if let Some(lane) = self.find(id) {
            lane.holding.settle(permit, 0);
        }
    }

    /// Replaces the reservation of a request by its usage.
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
        if let Some(id) = self.current_budget()
            && let Some(lane) = self.find(id)
        {
            let before = match lane.holding.loan() {
                Loan::Budget { accounted, .. } => accounted,
                Loan::Permits { .. } | Loan::Bucket { .. } => 0,
            };
            let spent = before.saturating_add(nanos(money));
            lane.holding.set_accounted(spent);
        }
    }

    /// Adds the asks that have to be sent now.
    pub(crate) fn poll(&mut self, now: Now, mut add: impl FnMut(LaneId, Ask)) {
        self.note_losses(now);
        let current = self.current_budget();
        self.lanes.retain(|lane| {
            let is_over = matches!(lane.id, LaneId::Budget(_)) && Some(lane.id) != current;
            !(is_over && lane.holding.is_dormant())
        });
        for lane in &mut self.lanes {
            if let Some(ask) = lane.holding.poll(at(now)) {
                add(lane.id, ask);
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
    pub(crate) fn is_waiting(&self) -> bool {
        self.lanes.iter().any(|lane| lane.holding.is_waiting())
    }

    /// Applies a notice of another replica about the limit of a holding.
    pub(crate) fn noticed(&mut self, key: &str) {
        for lane in &mut self.lanes {
            if lane.holding.is_of(key) {
                lane.holding.noticed();
            }
        }
    }

    /// Returns true if a holding should be polled now: it has something idle that other replicas may
    /// need, or little is left in it.
    pub(crate) fn is_due(&self) -> bool {
        self.lanes.iter().any(|lane| lane.holding.is_due())
    }

    /// Returns true if nothing is in use, and the store knows everything.
    pub(crate) fn is_dormant(&self) -> bool {
        self.lanes.iter().all(|lane| lane.holding.is_dormant())
    }

    /// Returns true if the store lends nothing for a holding: it does not answer, or may have
    /// forgotten its loans.
    pub(crate) fn is_degraded(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.lends())
    }

    /// Returns the state of each part that has a cap now.
    pub(crate) fn parts(&self) -> Vec<LentPart> {
        let current = self.current_budget();
        let lanes = self.lanes.iter();
        let lanes = lanes.filter(|lane| match lane.id {
            LaneId::Budget(_) => current == Some(lane.id),
            LaneId::Permits | LaneId::Requests | LaneId::Tokens => true,
        });
        let part = |lane: &Lane| {
            let dimension = lane.id.dimension();
            LentPart {
                dimension,
                key: lane.holding.key(),
                held: dimension.units(lane.holding.held()),
                free: dimension.units(lane.free),
            }
        };
        lanes.map(part).collect()
    }

    /// Returns the money that all replicas have spent in the current window, as the store has
    /// reported it last.
    pub(crate) fn spent(&self) -> Money {
        let current = self.current_budget();
        let mut lanes = self.lanes.iter().rev();
        let lane = lanes.find(|lane| current == Some(lane.id));
        let level = lane.map_or(0, |lane| lane.level);
        Money::from_nanos(i64::try_from(level).unwrap_or(i64::MAX))
    }

    /// Returns the rest of the rates: the amount that this replica holds, and the amount that the
    /// store could lend when it was asked last.
    pub(crate) fn remaining(&self) -> Remaining {
        let level = |id, cap: Option<u64>| {
            let mut lanes = self.lanes.iter();
            let (lane, cap) = lanes.find(|lane| lane.id == id).zip(cap)?;
            let left = lane.holding.available().saturating_add(lane.free);
            let left = left.min(micro(cap));
            Some(Level {
                limit: cap,
                remaining: left / MICRO,
                reset: (micro(cap) - left).saturating_mul(60) / cap.max(1),
            })
        };
        Remaining {
            requests: level(LaneId::Requests, self.caps.requests_per_minute),
            tokens: level(LaneId::Tokens, self.caps.tokens_per_minute),
        }
    }

    fn find(&mut self, id: LaneId) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.id == id)
    }

    /// Returns the holding of the current window of the budget, which was added last.
    fn current_budget(&self) -> Option<LaneId> {
        let mut ids = self.lanes.iter().rev().map(|lane| lane.id);
        ids.find(|id| matches!(id, LaneId::Budget(_)))
    }
}

impl Lane {
    /// Returns true if the store lends: it has answered, and knows its loans.
    fn lends(&self) -> bool {
        !self.holding.is_degraded() && !self.holding.is_quarantined()
    }

    /// Returns the reservation of a request that may use `amount`. It is no more than the rest of a
    /// budget while this replica has reserved nothing else: otherwise the last part of a budget
    /// could never be spent. So each replica can overdraw a budget by one request.
    fn reservation(&self, amount: u64) -> u64 {
        let Loan::Budget { amount: budget, .. } = self.holding.loan() else {
            return amount;
        };
        if self.holding.in_use() > 0 {
            return amount;
        }
        let spent = self.level.saturating_add(self.holding.unreported());
        amount.min(budget.saturating_sub(spent).max(1))
    }

    /// Returns the microseconds in which an amount flows off; `None` if nothing does.
    fn flows_off(&self, amount: u64) -> Option<u64> {
        let per_minute = self.holding.loan().per_minute();
        (per_minute > 0).then(|| amount.saturating_mul(60).saturating_mul(MICRO) / per_minute)
    }
}

impl LaneId {
    /// Returns the last part of the names of these holdings in the store.
    fn name(self) -> &'static str {
        match self {
            Self::Permits => "concurrency",
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Budget(_) => "budget",
        }
    }

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
