//! The shares of one scope of a leased limit.

mod loss;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use smallvec::SmallVec;

use crate::budget::Budget;
use crate::exchange::{LeaseGrant, LeaseRequest, LeasedLimitSpec};
use crate::leased_share::{FailMode, LeaseSettings, LeasedShare, LostLease, ShareReservation};
use crate::limit::{Caps, Dimension, MICRO};
use crate::money::Money;
use crate::request::{Level, Now, Remaining, Used};

pub use self::loss::LeaseLoss;

/// A leased limit, for one of its scopes: one share for each dimension that has a cap.
#[derive(Debug)]
pub(crate) struct LeasedLimit {
    /// The name of the scope in the store.
    name: Arc<str>,
    lending: LeaseSettings,
    caps: Caps,
    /// The share of an earlier budget window stays until its requests have ended and the store
    /// knows the spending of these requests.
    dimensions: Vec<LeasedDimension>,
    /// True if leases whose requests have to end were lost since [`take_lost`](Self::take_lost) was
    /// called last.
    has_lost: bool,
}

/// The share of one dimension, and the last report of the store about it.
#[derive(Debug)]
struct LeasedDimension {
    id: DimensionId,
    share: LeasedShare,
    /// The amount that is available to any replica.
    free: u64,
    /// The spent amount that has not drained yet.
    level: u64,
    /// The loss of the present lease; `None` if requests go on after it.
    loss: Option<LeaseLoss>,
}

/// The identity of a dimension within its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DimensionId {
    Permits,
    Requests,
    Tokens,
    /// The budget window with this end, in milliseconds since the Unix epoch.
    Budget(i64),
}

/// The amounts that a request has taken from the shares of a scope.
pub(crate) type LeasedAmounts = SmallVec<[(DimensionId, ShareReservation); 4]>;

/// The status of one dimension of a leased limit. Amounts are in the unit of its cap; budget
/// amounts are in nano-units of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseStatus {
    /// The dimension.
    pub dimension: Dimension,
    /// The name of the dimension in the store ([`LeaseRequest::key`]).
    pub key: String,
    /// The amount that this replica holds.
    pub held: u64,
    /// The amount that was available to any replica at the last grant.
    pub free: u64,
}

/// A dimension whose share has too little for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortfall {
    pub(crate) dimension: Dimension,
    /// The microseconds in which the needed amount drains, for rates.
    pub(crate) retry_after: Option<u64>,
    /// True if the store may grant more. False if it did not answer the last request, or has
    /// reported a quarantine a short time ago.
    pub(crate) may_wait: bool,
    /// True if the store grants nothing, as far as is known.
    pub(crate) is_degraded: bool,
}

impl LeasedLimit {
    /// Creates empty shares for the caps of a scope.
    pub(crate) fn new(
        limit: &str,
        scope: &str,
        caps: &Caps,
        lending: LeaseSettings,
        now: Now,
    ) -> Self {
        let mut leased = Self {
            name: format!("{limit}/{scope}").into(),
            lending,
            caps: Caps::default(),
            dimensions: Vec::new(),
            has_lost: false,
        };
        leased.refresh(caps, lending, now);
        leased
    }

    /// Adapts the shares to changed caps and settings, and begins a new window of the budget if the
    /// last one has ended.
    pub(crate) fn refresh(&mut self, caps: &Caps, lending: LeaseSettings, now: Now) {
        if self.caps != *caps || self.lending != lending {
            self.lending = lending;
            let permits = caps.concurrency.map(|cap| LeasedLimitSpec::Permits { cap });
            let bucket = |cap| LeasedLimitSpec::Bucket {
                per_minute: micro(cap),
                capacity: micro(cap),
            };
            self.set_spec(DimensionId::Permits, permits);
            self.set_spec(DimensionId::Requests, caps.requests_per_minute.map(bucket));
            self.set_spec(DimensionId::Tokens, caps.tokens_per_minute.map(bucket));
            if let Some(budget) = &caps.budget {
                self.set_amount(nanos(budget.amount));
            }
            self.caps = caps.clone();
        }
        if let Some(budget) = &caps.budget {
            self.refresh_budget(budget, now.unix_ms);
        }
    }

    /// Sets the terms of a dimension, which is added or removed if necessary.
    fn set_spec(&mut self, id: DimensionId, spec: Option<LeasedLimitSpec>) {
        let (mode, loss) = (self.lending.mode, self.new_loss(id));
        match (spec, self.find(id)) {
            (None, _) => self.dimensions.retain(|leased| leased.id != id),
            (Some(spec), Some(leased)) => {
                leased.share.set_terms(spec, mode);
                if leased.loss.is_some() != loss.is_some() {
                    leased.share.set_ends_requests(loss.is_some());
                    leased.loss = loss;
                }
            }
            (Some(spec), None) => self.add(id, spec),
        }
    }

    /// Returns the loss of a lease of a dimension, if requests have to end with it. An open limit
    /// admits more than its cap without a lease, so its requests need not end.
    fn new_loss(&self, id: DimensionId) -> Option<LeaseLoss> {
        let LeaseSettings {
            mode, lost_lease, ..
        } = self.lending;
        let ends_requests = lost_lease == LostLease::End && mode != FailMode::Open;
        (id == DimensionId::Permits && ends_requests).then(LeaseLoss::default)
    }

    /// Changes the amount of the budget in its current window, if it has begun.
    fn set_amount(&mut self, new: u64) {
        let mode = self.lending.mode;
        let current = self.current_budget();
        let Some(leased) = current.and_then(|id| self.find(id)) else {
            return;
        };
        let mut spec = leased.share.spec();
        if let LeasedLimitSpec::Budget { amount, .. } = &mut spec {
            *amount = new;
        }
        leased.share.set_terms(spec, mode);
    }

    fn refresh_budget(&mut self, budget: &Budget, unix_ms: i64) {
        if matches!(self.current_budget(), Some(DimensionId::Budget(ends_ms)) if unix_ms < ends_ms)
        {
            return;
        }
        let now = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::MAX);
        let period = budget.period(now);
        let spec = LeasedLimitSpec::Budget {
            amount: nanos(budget.amount),
            window: u64::try_from(period.start.as_second()).unwrap_or(0),
            accounted: 0,
        };
        self.add(DimensionId::Budget(period.end.as_millisecond()), spec);
    }

    /// Adds a dimension with an empty share.
    fn add(&mut self, id: DimensionId, spec: LeasedLimitSpec) {
        let name = format!("{}/{}", self.name, id.name());
        let LeaseSettings { mode, lease, .. } = self.lending;
        let mut share = LeasedShare::new(name.into(), spec, mode, lease);
        let loss = self.new_loss(id);
        share.set_ends_requests(loss.is_some());
        // Most limits keep the dimensions that they have.
        self.dimensions.reserve_exact(1);
        self.dimensions.push(LeasedDimension {
            id,
            share,
            free: 0,
            level: 0,
            loss,
        });
    }

    /// Takes the amounts that a request needs from the shares of all dimensions, or nothing.
    ///
    /// # Errors
    /// Returns the first dimension whose share has too little.
    pub(crate) fn take(
        &mut self,
        tokens: u64,
        money: Money,
        now: Now,
    ) -> Result<LeasedAmounts, Shortfall> {
        self.note_losses(now);
        let mut taken = LeasedAmounts::new();
        let current = self.current_budget();
        let needs = [
            (Some(DimensionId::Permits), 1),
            // Not even a request that costs nothing is admitted once a budget is used up.
            (current, nanos(money).max(1)),
            (Some(DimensionId::Requests), micro(1)),
            (Some(DimensionId::Tokens), micro(tokens)),
        ];
        for (id, amount) in needs {
            let Some(id) = id else { continue };
            let Some(leased) = self.find(id) else {
                continue;
            };
            let amount = leased.reservation(amount);
            let Some(part) = leased.share.take(amount, at(now)) else {
                let shortfall = Shortfall {
                    dimension: id.dimension(),
                    retry_after: leased.refill_time(amount),
                    may_wait: leased.share.may_wait_for_grant(at(now)),
                    is_degraded: !leased.lends(),
                };
                self.release(taken);
                return Err(shortfall);
            };
            taken.push((id, part));
        }
        Ok(taken)
    }

    /// Returns the loss of the lease with which newly admitted requests have to end, if they have
    /// to.
    pub(crate) fn loss(&self) -> Option<&LeaseLoss> {
        self.dimensions
            .iter()
            .find_map(|leased| leased.loss.as_ref())
    }

    /// Returns true if leases whose requests have to end were lost since the last call.
    pub(crate) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    /// Notes the lost leases whose requests have to end. Requests that are admitted from now on
    /// share another loss.
    fn note_losses(&mut self, now: Now) {
        for leased in &mut self.dimensions {
            if let Some(loss) = &mut leased.loss
                && leased.share.take_loss(at(now))
            {
                std::mem::take(loss).happen();
                self.has_lost = true;
            }
        }
    }

    /// Releases the taken amounts, as if they had never been taken.
    pub(crate) fn release(&mut self, taken: LeasedAmounts) {
        for (id, part) in taken {
            if let Some(leased) = self.find(id) {
                leased.share.release(part);
            }
        }
    }

    /// Releases the permit among the taken amounts, and keeps the rest.
    pub(crate) fn release_place(&mut self, taken: &mut LeasedAmounts) {
        let place = taken.iter().position(|(id, _)| *id == DimensionId::Permits);
        let Some(place) = place else { return };
        let (id, permit) = taken.remove(place);
        if let Some(leased) = self.find(id) {
            leased.share.settle(permit, 0);
        }
    }

    /// Replaces the reservation of a request by its usage.
    pub(crate) fn settle(&mut self, taken: LeasedAmounts, used: Used) {
        for (id, part) in taken {
            let spent = match id {
                DimensionId::Permits => 0,
                DimensionId::Requests => part.amount,
                DimensionId::Tokens => micro(used.tokens),
                DimensionId::Budget(_) => nanos(used.money),
            };
            if let Some(leased) = self.find(id) {
                leased.share.settle(part, spent);
            }
        }
    }

    /// Sets the money that is known to be spent in the current window, for a store that does not know
    /// it.
    pub(crate) fn set_accounted(&mut self, money: Money) {
        let current = self.current_budget();
        if let Some(leased) = current.and_then(|id| self.find(id)) {
            leased.share.set_accounted(nanos(money));
        }
    }

    /// Calls `add` with each lease request that has to be sent now. Drops the unused shares of
    /// earlier budget windows.
    pub(crate) fn poll(&mut self, now: Now, mut add: impl FnMut(DimensionId, LeaseRequest)) {
        self.note_losses(now);
        let current = self.current_budget();
        self.dimensions.retain(|leased| {
            let is_over = matches!(leased.id, DimensionId::Budget(_)) && Some(leased.id) != current;
            !(is_over && leased.share.is_unused())
        });
        for leased in &mut self.dimensions {
            if let Some(request) = leased.share.poll(at(now)) {
                add(leased.id, request);
            }
        }
    }

    /// Applies the grant for a lease request; `None` if the store did not answer.
    pub(crate) fn on_grant(
        &mut self,
        id: DimensionId,
        request: &LeaseRequest,
        grant: Option<&LeaseGrant>,
        now: Now,
    ) {
        // The slot may belong to another scope by now.
        if !request.limit.starts_with(&*self.name) {
            return;
        }
        let Some(leased) = self.find(id) else { return };
        match grant {
            // A grant with another number refuses the request, which came too late.
            Some(grant) if grant.seq == request.seq => {
                leased.share.on_grant(grant, at(now));
                (leased.free, leased.level) = (grant.available, grant.level);
            }
            _ => leased.share.on_no_answer(request.seq, at(now)),
        }
    }

    /// Returns true if requests wait for an amount that is not being requested, or have not taken
    /// their grant yet.
    pub(crate) fn needs_retry(&self) -> bool {
        self.dimensions
            .iter()
            .any(|leased| leased.share.needs_retry())
    }

    /// Applies a notice of another replica about a dimension of the limit.
    pub(crate) fn on_notice(&mut self, key: &str) {
        for leased in &mut self.dimensions {
            if leased.share.matches_key(key) {
                leased.share.on_notice();
            }
        }
    }

    /// Returns true if a share should be polled now: it has an idle amount that other replicas may
    /// need, or little is left in it.
    pub(crate) fn should_exchange(&self) -> bool {
        self.dimensions
            .iter()
            .any(|leased| leased.share.should_exchange())
    }

    /// Returns true if no share is used: nothing is in use, and the store knows everything. Spending
    /// in the current window is kept, because the store may lose its data.
    pub(crate) fn is_unused(&self) -> bool {
        let current = self.current_budget();
        self.dimensions.iter().all(|leased| {
            let is_over = current != Some(leased.id);
            leased.share.is_unused() && (is_over || leased.share.accounted() == 0)
        })
    }

    /// Returns true if the store grants nothing for a dimension: it does not answer, or is in
    /// quarantine.
    pub(crate) fn is_degraded(&self) -> bool {
        self.dimensions.iter().any(|leased| !leased.lends())
    }

    /// Returns the status of each dimension that has a cap now.
    pub(crate) fn parts(&self) -> Vec<LeaseStatus> {
        let current = self.current_budget();
        let dimensions = self.dimensions.iter();
        let dimensions = dimensions.filter(|leased| match leased.id {
            DimensionId::Budget(_) => current == Some(leased.id),
            DimensionId::Permits | DimensionId::Requests | DimensionId::Tokens => true,
        });
        let part = |leased: &LeasedDimension| {
            let dimension = leased.id.dimension();
            LeaseStatus {
                dimension,
                key: leased.share.key(),
                held: dimension.units(leased.share.held()),
                free: dimension.units(leased.free),
            }
        };
        dimensions.map(part).collect()
    }

    /// Returns the money that all replicas have spent in the current window, as the store has
    /// reported it last.
    pub(crate) fn spent(&self) -> Money {
        let current = self.current_budget();
        let mut dimensions = self.dimensions.iter().rev();
        let leased = dimensions.find(|leased| current == Some(leased.id));
        let level = leased.map_or(0, |leased| leased.level);
        Money::from_nanos(i64::try_from(level).unwrap_or(i64::MAX))
    }

    /// Returns the remaining rates: the amount that this replica holds, and the amount that was
    /// available in the store at the last grant.
    pub(crate) fn remaining(&self) -> Remaining {
        let level = |id, cap: Option<u64>| {
            let mut dimensions = self.dimensions.iter();
            let (leased, cap) = dimensions.find(|leased| leased.id == id).zip(cap)?;
            let left = leased.share.available().saturating_add(leased.free);
            let left = left.min(micro(cap));
            Some(Level {
                limit: cap,
                remaining: left / MICRO,
                reset: (micro(cap) - left).saturating_mul(60) / cap.max(1),
            })
        };
        Remaining {
            requests: level(DimensionId::Requests, self.caps.requests_per_minute),
            tokens: level(DimensionId::Tokens, self.caps.tokens_per_minute),
        }
    }

    fn find(&mut self, id: DimensionId) -> Option<&mut LeasedDimension> {
        self.dimensions.iter_mut().find(|leased| leased.id == id)
    }

    /// Returns the identity of the current window of the budget, which was added last.
    fn current_budget(&self) -> Option<DimensionId> {
        let mut ids = self.dimensions.iter().rev().map(|leased| leased.id);
        ids.find(|id| matches!(id, DimensionId::Budget(_)))
    }
}

impl LeasedDimension {
    /// Returns true if the store grants: it has answered, and is not in quarantine.
    fn lends(&self) -> bool {
        !self.share.is_degraded() && !self.share.is_quarantined()
    }

    /// Returns the reservation of a request that may use `amount`. It is no more than the rest of a
    /// budget while this replica has reserved nothing else: otherwise the last part of a budget
    /// could never be spent. So each replica can overdraw a budget by one request.
    fn reservation(&self, amount: u64) -> u64 {
        let LeasedLimitSpec::Budget { amount: budget, .. } = self.share.spec() else {
            return amount;
        };
        if self.share.in_use() > 0 {
            return amount;
        }
        let spent = self.level.saturating_add(self.share.unreported());
        amount.min(budget.saturating_sub(spent).max(1))
    }

    /// Returns the microseconds in which an amount drains; `None` if the dimension is no rate.
    fn refill_time(&self, amount: u64) -> Option<u64> {
        let per_minute = self.share.spec().per_minute();
        (per_minute > 0).then(|| amount.saturating_mul(60).saturating_mul(MICRO) / per_minute)
    }
}

impl DimensionId {
    /// Returns the last part of the name of the dimension in the store.
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
