//! The ledger: the used part of each limit, and the check whether one more request fits all limits.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use slab::Slab;
use smallvec::SmallVec;

use crate::exchange::{LeaseGrant, LeaseRequest};
use crate::leased_limit::{DimensionId, LeaseLoss, LeaseStatus, LeasedAmounts, LeasedLimit};
use crate::limit::{Caps, Terms};
use crate::money::Money;
use crate::request::{Claim, Demand, LimitId, Now, Refused, Remaining, Used};
use crate::scope_counters::{BudgetWindow, ScopeCounters};

/// The requests in progress, the rates and the spending of all limits.
///
/// A request is admitted by all limits that apply to it, or by none: a refused request consumes
/// nothing. The amounts that it may use are reserved when it is admitted, and replaced by its usage
/// when it has ended. Usage beyond the reservation is a debt of the limit, which is paid before the
/// next request is admitted.
///
/// A limit counts each of its scopes, such as each API key, by itself. Scopes in which nothing is
/// used are dropped, apart from a few.
#[derive(Debug, Default)]
pub struct Ledger {
    limits: Slab<Limit>,
    /// The number of limits that were ever set.
    numbered: u64,
    /// The limits by their names.
    names: HashMap<Arc<str>, LimitId>,
    slots: Slab<ScopeCounters>,
    /// The position from which [`Ledger::sweep`] goes on.
    swept: usize,
    /// The latest time that was seen.
    latest: Now,
    /// The slots with shares that may have to be polled.
    due: Vec<usize>,
    /// True if leases whose requests have to end were lost since [`Ledger::has_lost_leases`] was
    /// called last.
    has_lost: bool,
}

/// The admission of a request, which has to be ended with [`Ledger::end`].
#[derive(Debug)]
#[must_use = "an admission that is not given back counts forever"]
pub struct Admission {
    holds: SmallVec<[ScopeReservation; 3]>,
    /// The money that is reserved in every slot with a budget.
    money: Money,
    /// False once its place was released.
    has_place: bool,
    /// The remaining rates, if there are any.
    remaining: Remaining,
    /// True if the ledger had to be polled after the admission.
    is_due: bool,
    /// True if the store of a leased limit granted nothing at the time of the admission.
    is_degraded: bool,
    /// The losses of the leases with which the request has to end.
    losses: SmallVec<[LeaseLoss; 2]>,
}

/// The slot in which a request is counted, and the tokens that are reserved there.
#[derive(Debug)]
struct ScopeReservation {
    slot: usize,
    tokens: u64,
    window: BudgetWindow,
    /// The amounts taken from the shares of a leased limit.
    taken: Option<Box<LeasedAmounts>>,
}

/// A lease request for one dimension of a limit, which has to be sent to the store.
#[derive(Debug)]
pub struct PendingRequest {
    /// The lease request.
    pub request: LeaseRequest,
    slot: usize,
    dimension: DimensionId,
}

/// The state of one scope of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name of the limit.
    pub limit: Arc<str>,
    /// The scope; empty if the limit has only one.
    pub scope: Arc<str>,
    /// The caps of the limit.
    pub caps: Caps,
    /// The requests in progress.
    pub in_use: u64,
    /// The remaining rates.
    pub remaining: Remaining,
    /// The money that was spent in the current window, if there is a budget.
    pub spent: Option<Money>,
    /// The money that is reserved for requests in progress.
    pub reserved: Money,
    /// True if the limit is leased and its store grants nothing now: it does not answer, or is in
    /// quarantine.
    pub is_degraded: bool,
    /// The dimensions of the limit, if it is leased.
    pub lent: Vec<LeaseStatus>,
}

#[derive(Debug)]
struct Limit {
    id: LimitId,
    name: Arc<str>,
    /// `None` if the limit was removed. It may still have requests in progress.
    terms: Option<Terms>,
    /// The positions of the slots.
    scopes: HashMap<Arc<str>, usize, RandomState>,
}

impl Ledger {
    /// Creates a ledger without limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces all limits. A limit whose name was there before keeps its usage. A limit that is
    /// not listed is removed, and takes no memory once nothing of it is in use. If a budget of this
    /// process is removed and set again, it is another limit, because the spending in between is
    /// not known here. Returns the identities in order. A later limit of the same name replaces the
    /// caps of the earlier one.
    pub fn set_limits(
        &mut self,
        limits: impl IntoIterator<Item = (Arc<str>, Terms)>,
    ) -> Vec<LimitId> {
        let before: Vec<_> = self
            .limits
            .iter_mut()
            .filter_map(|(_, limit)| Some((limit.id, limit.terms.take()?)))
            .collect();
        let set = |(name, terms)| self.set_limit(name, terms);
        let ids = limits.into_iter().map(set).collect();
        for (id, terms) in before {
            let limit = &self.limits[id.place];
            let is_own_budget = terms.caps.budget.is_some() && terms.lending.is_none();
            if is_own_budget && limit.terms.is_none() {
                self.names.remove(&limit.name);
            }
        }
        self.limits.retain(|_, limit| {
            let is_needed = limit.terms.is_some() || !limit.scopes.is_empty();
            if !is_needed && self.names.get(&limit.name) == Some(&limit.id) {
                self.names.remove(&limit.name);
            }
            is_needed
        });
        ids
    }

    fn set_limit(&mut self, name: Arc<str>, terms: Terms) -> LimitId {
        if let Some(id) = self.names.get(&name) {
            self.limits[id.place].terms = Some(terms);
            return *id;
        }
        let entry = self.limits.vacant_entry();
        let id = LimitId {
            place: entry.key(),
            number: self.numbered,
        };
        self.numbered += 1;
        entry.insert(Limit {
            id,
            name: Arc::clone(&name),
            terms: Some(terms),
            scopes: HashMap::default(),
        });
        self.names.insert(name, id);
        id
    }

    /// Returns a limit, unless it was removed and another one has its place by now.
    fn limit(&self, id: LimitId) -> Option<&Limit> {
        self.limits.get(id.place).filter(|limit| limit.id == id)
    }

    /// Admits a request if all its limits have room for it. Limits that were removed always have
    /// room.
    ///
    /// `demand` gets the number of tokens that answers of the claimed scopes rarely exceed, if it
    /// is known, and returns the amounts to reserve.
    ///
    /// # Errors
    /// Returns the first limit that has no room.
    pub fn admit(
        &mut self,
        claims: &[Claim<'_>],
        demand: impl FnOnce(Option<u64>) -> Demand,
        now: Now,
    ) -> Result<Admission, Refused> {
        let mut holds: SmallVec<[ScopeReservation; 3]> = SmallVec::new();
        for claim in claims {
            if let Some(slot) = self.slot(*claim, now) {
                holds.push(ScopeReservation {
                    slot,
                    tokens: 0,
                    window: BudgetWindow::default(),
                    taken: None,
                });
            }
        }
        let typical = holds
            .iter()
            .filter_map(|hold| self.slots[hold.slot].typical_answer())
            .max();
        let demand = demand(typical);
        self.latest = now;
        let mut refused = holds.iter_mut().find_map(|hold| self.check(hold, demand));
        if refused.is_none() {
            refused = self.reserve_leased(&mut holds, demand, now);
        }
        if let Some(mut refused) = refused {
            refused.remaining = self.remaining(&holds);
            return Err(refused);
        }
        for hold in &mut holds {
            let slot = &mut self.slots[hold.slot];
            hold.window = slot.take(hold.tokens, demand.money);
            if slot.is_due() {
                self.due.push(hold.slot);
            }
        }
        let remaining = self.remaining(&holds);
        let leased = holds
            .iter()
            .filter_map(|hold| self.slots[hold.slot].leased());
        let losses = leased.filter_map(|leased| leased.loss().cloned()).collect();
        let is_degraded = holds.iter().any(|hold| self.slots[hold.slot].is_degraded());
        self.sweep(now);
        Ok(Admission {
            holds,
            money: demand.money,
            has_place: true,
            remaining,
            is_due: self.is_due(),
            is_degraded,
            losses,
        })
    }

    /// Releases the place of a request that goes on without one, such as a response in the
    /// background, and keeps its reservation until its [end](Self::end). Returns true if the ledger
    /// has to be polled now.
    pub fn release_place(&mut self, admission: &mut Admission) -> bool {
        if std::mem::take(&mut admission.has_place) {
            for hold in &mut admission.holds {
                let Some(slot) = self.slots.get_mut(hold.slot) else {
                    continue;
                };
                slot.release_place(hold.taken.as_deref_mut());
                if slot.is_due() {
                    self.due.push(hold.slot);
                }
            }
        }
        self.is_due()
    }

    /// Ends a request: releases its place and its reservation, and counts its usage. Its money
    /// counts in the window in which it was admitted. Returns true if the ledger has to be polled
    /// now, as [`is_due`](Self::is_due) does.
    pub fn end(&mut self, mut admission: Admission, used: Used, now: Now) -> bool {
        self.latest = now;
        self.release_place(&mut admission);
        for hold in admission.holds {
            let Some(slot) = self.slots.get_mut(hold.slot) else {
                continue;
            };
            let terms = self.limits[slot.limit.place].terms.as_ref();
            slot.refresh(terms, now);
            let taken = hold.taken.map(|taken| *taken);
            slot.settle((hold.tokens, admission.money), hold.window, used, taken);
            if slot.is_due() {
                self.due.push(hold.slot);
            }
        }
        self.is_due()
    }

    /// Drops all scopes in which nothing is used. Admissions do so as well, little by little.
    pub fn drop_idle(&mut self, now: Now) {
        let all: Vec<usize> = self.slots.iter().map(|(index, _)| index).collect();
        all.into_iter()
            .for_each(|index| self.drop_if_idle(index, now));
    }

    /// Returns the time of the last admission or end of a request.
    #[must_use]
    pub fn latest(&self) -> Now {
        self.latest
    }

    /// Adds money that was spent before this ledger began, in the window of `now`. For a leased limit
    /// it is the amount that is known outside of the lease store, which replaces an earlier one.
    pub fn add_spent(&mut self, claim: Claim<'_>, spent: Money, now: Now) {
        if let Some(index) = self.slot(claim, now) {
            self.slots[index].add_spent(spent);
        }
    }

    /// Returns the requests in progress of one scope.
    #[must_use]
    pub fn in_use(&self, claim: Claim<'_>) -> u64 {
        let limit = self.limit(claim.limit);
        let index = limit.and_then(|limit| limit.scopes.get(claim.scope));
        index.map_or(0, |index| self.slots[*index].in_use())
    }

    /// Returns the state of all scopes in which something is used, by limit and scope.
    #[must_use]
    pub fn status(&mut self, now: Now) -> Vec<Status> {
        let mut all = Vec::new();
        for (_, slot) in &mut self.slots {
            let limit = &self.limits[slot.limit.place];
            let Some(terms) = &limit.terms else {
                continue;
            };
            slot.refresh(Some(terms), now);
            let caps = &terms.caps;
            all.push(Status {
                limit: Arc::clone(&limit.name),
                scope: Arc::clone(&slot.scope),
                caps: caps.clone(),
                in_use: slot.in_use(),
                remaining: slot.remaining(),
                spent: caps.budget.as_ref().map(|_| slot.spent()),
                reserved: slot.reserved(),
                is_degraded: slot.is_degraded(),
                lent: slot.leased().map_or_else(Vec::new, LeasedLimit::parts),
            });
        }
        all.sort_by(|a, b| (&a.limit, &a.scope).cmp(&(&b.limit, &b.scope)));
        all
    }

    /// Returns the lease requests that have to be sent to the store now: for the shares in which
    /// something has happened, or with `all`, for every share whose lease has to be renewed.
    pub fn poll(&mut self, now: Now, all: bool) -> Vec<PendingRequest> {
        let mut due = std::mem::take(&mut self.due);
        if all {
            due = self.slots.iter().map(|(index, _)| index).collect();
        }
        due.sort_unstable();
        due.dedup();
        let mut requests = Vec::new();
        for slot in due {
            let leased = self.slots.get_mut(slot);
            let Some(leased) = leased.and_then(ScopeCounters::leased_mut) else {
                continue;
            };
            leased.poll(now, |dimension, request| {
                requests.push(PendingRequest {
                    request,
                    slot,
                    dimension,
                });
            });
            self.has_lost |= leased.take_lost();
            if leased.needs_retry() {
                self.due.push(slot);
            }
        }
        requests
    }

    /// Returns true if something has happened in a share since it was polled, or requests wait for
    /// an amount that the store did not have. Poll again, after a while in the second case.
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns true once after polls have found lost leases whose requests have to end: the
    /// [losses](Admission::losses) of these requests have happened.
    pub fn has_lost_leases(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    /// Applies the grant for a lease request; `None` if the store did not answer.
    pub fn on_grant(&mut self, asked: &PendingRequest, grant: Option<&LeaseGrant>, now: Now) {
        let slot = self.slots.get_mut(asked.slot);
        if let Some(leased) = slot.and_then(ScopeCounters::leased_mut) {
            leased.on_grant(asked.dimension, &asked.request, grant, now);
            self.due.push(asked.slot);
        }
    }

    /// Applies a notice of another replica about a leased limit, by its [key](LeaseRequest::key).
    /// Poll the ledger afterwards.
    pub fn on_notice(&mut self, key: &str) {
        let Some(index) = self.find_leased(key) else {
            return;
        };
        if let Some(leased) = self.slots[index].leased_mut() {
            leased.on_notice(key);
            self.due.push(index);
        }
    }

    /// Returns the slot of a key. A key is the names of the limit, the scope and the dimension,
    /// separated by slashes; the first two can contain slashes as well.
    fn find_leased(&self, key: &str) -> Option<usize> {
        let (slot, _part) = key.rsplit_once('/')?;
        slot.match_indices('/').find_map(|(at, _)| {
            let limit = self.limit(*self.names.get(&slot[..at])?)?;
            limit.scopes.get(&slot[at + 1..]).copied()
        })
    }

    /// Returns the number of limits that take memory.
    #[must_use]
    pub fn limits(&self) -> usize {
        self.limits.len()
    }

    /// Returns the number of scopes that take memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns true if nothing is used of any limit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the slot of a claim, up to date, and creates it if nothing is used in it. `None` if
    /// the limit was removed.
    fn slot(&mut self, claim: Claim<'_>, now: Now) -> Option<usize> {
        let limit = self.limits.get_mut(claim.limit.place);
        let limit = limit.filter(|limit| limit.id == claim.limit)?;
        let terms = limit.terms.as_ref()?;
        if let Some(index) = limit.scopes.get(claim.scope) {
            self.slots[*index].refresh(Some(terms), now);
            return Some(*index);
        }
        let scope: Arc<str> = claim.scope.into();
        let slot = ScopeCounters::new(claim.limit, &limit.name, Arc::clone(&scope), terms, now);
        let index = self.slots.insert(slot);
        limit.scopes.insert(scope, index);
        Some(index)
    }

    /// Checks one slot, and sets the tokens that are to be reserved in it.
    fn check(&self, hold: &mut ScopeReservation, demand: Demand) -> Option<Refused> {
        let slot = &self.slots[hold.slot];
        let limit = &self.limits[slot.limit.place];
        let caps = &limit.terms.as_ref()?.caps;
        hold.tokens = slot.reservation(caps, demand.tokens);
        let (dimension, retry_after) = slot.first_exceeded(caps, hold.tokens, demand.money)?;
        Some(Refused {
            limit: Arc::clone(&limit.name),
            dimension,
            cap: caps.cap(dimension),
            retry_after,
            may_wait: false,
            is_degraded: false,
            remaining: Remaining::default(),
        })
    }

    /// Takes the amounts that a request needs from the shares of all leased limits, or nothing.
    fn reserve_leased(
        &mut self,
        holds: &mut [ScopeReservation],
        demand: Demand,
        now: Now,
    ) -> Option<Refused> {
        let mut shortfall = None;
        for hold in holds.iter_mut() {
            let slot = &mut self.slots[hold.slot];
            let Some(leased) = slot.leased_mut() else {
                continue;
            };
            match leased.take(hold.tokens, demand.money, now) {
                Ok(taken) => hold.taken = Some(Box::new(taken)),
                Err(found) => {
                    self.due.push(hold.slot);
                    shortfall = Some((slot.limit, found));
                    break;
                }
            }
        }
        let (limit, shortfall) = shortfall?;
        for hold in holds {
            let leased = self.slots[hold.slot].leased_mut();
            if let (Some(leased), Some(taken)) = (leased, hold.taken.take()) {
                leased.release(*taken);
            }
        }
        let limit = &self.limits[limit.place];
        let terms = limit.terms.as_ref();
        Some(Refused {
            limit: Arc::clone(&limit.name),
            dimension: shortfall.dimension,
            cap: terms.map_or(0, |terms| terms.caps.cap(shortfall.dimension)),
            retry_after: shortfall.retry_after,
            may_wait: shortfall.may_wait,
            is_degraded: shortfall.is_degraded,
            remaining: Remaining::default(),
        })
    }

    fn remaining(&self, holds: &[ScopeReservation]) -> Remaining {
        let levels = holds.iter().filter_map(|hold| {
            let slot = &self.slots[hold.slot];
            let terms = self.limits[slot.limit.place].terms.as_ref()?;
            let caps = &terms.caps;
            caps.has_rates().then(|| slot.remaining())
        });
        levels.fold(Remaining::default(), Remaining::min)
    }

    fn drop_if_idle(&mut self, index: usize, now: Now) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        let limit = &mut self.limits[slot.limit.place];
        let terms = limit.terms.as_ref();
        slot.refresh(terms, now);
        if slot.is_idle(terms.map(|terms| &terms.caps)) {
            limit.scopes.remove(&slot.scope);
            self.slots.remove(index);
        }
    }

    /// Looks at a few slots if there are many, and drops the idle ones.
    fn sweep(&mut self, now: Now) {
        if self.slots.len() <= RETAINED {
            return;
        }
        for _ in 0..SWEPT_AT_ONCE {
            self.swept = if self.swept + 1 < self.slots.capacity() {
                self.swept + 1
            } else {
                0
            };
            self.drop_if_idle(self.swept, now);
        }
    }
}

/// The number of slots that each admission looks at.
const SWEPT_AT_ONCE: usize = 2;
/// The number of slots that are retained, because a scope whose last request has ended probably has
/// another one soon.
const RETAINED: usize = 64;

impl Admission {
    /// Returns the remaining rates, as of the admission.
    #[must_use]
    pub fn remaining(&self) -> Remaining {
        self.remaining
    }

    /// Returns true if the ledger had to be polled after the admission, as [`Ledger::is_due`] does.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// Returns the losses of the leases with which the request has to end.
    #[must_use]
    pub fn losses(&self) -> &[LeaseLoss] {
        &self.losses
    }

    /// Returns true if the store of a limit did not answer, or was in quarantine, so that the
    /// request was admitted without it.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.is_degraded
    }
}
