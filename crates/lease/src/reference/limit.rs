//! The rules for one limit.

use std::collections::BTreeMap;
use std::time::Duration;

use quota::{LeaseGrant, LeaseRequest, LeasedLimitSpec, MAX_AMOUNT, USED_MODULUS};

use super::{ExchangeRequest, StoreState};

/// The data of a limit in a store.
#[derive(Clone, Debug, Default)]
pub(super) struct Limit {
    epoch: u64,
    level: u64,
    /// The part of a unit that has drained and is not yet subtracted from `level`, in 60,000ths.
    remainder: u64,
    /// The time up to which `level` has drained.
    at: u64,
    /// The event that has to be one lease ago before all leases are known again.
    quarantine: u64,
    replicas: BTreeMap<u64, ReplicaShare>,
}

#[derive(Clone, Debug)]
struct ReplicaShare {
    held: u64,
    used: u64,
    seq: u64,
    incarnation: u64,
    /// The event with which the lease began.
    renewed: u64,
    /// The amount for which requests of the replica still wait.
    short: u64,
}

impl Limit {
    /// Handles a lease request. Also returns true if the other replicas have to be notified: they
    /// may have idle amounts for which this replica waits, or this replica has returned an amount
    /// for which they wait.
    pub(super) fn exchange(
        &mut self,
        request: &LeaseRequest,
        call: &ExchangeRequest,
        state: &StoreState,
    ) -> (LeaseGrant, bool) {
        self.rebase_to_epoch(state);
        self.drain(state.drained_ms, request.spec.per_minute());
        self.expire(state, &request.spec);
        let returned = match self.is_stale(request, call, state) {
            true => None,
            false => self.record_claim(request, call.replica, state),
        };
        self.recover(state, &request.spec);
        self.reply(request, call, state, returned)
    }

    /// Returns true if the store need not keep any data of the limit.
    pub(super) fn is_empty(&self, state: &StoreState) -> bool {
        self.replicas.is_empty() && self.level == 0 && !self.is_quarantined(state)
    }

    /// Lowers event numbers that are ahead of the store state to its latest event: if only the
    /// store state was lost, events and time have started over.
    fn rebase_to_epoch(&mut self, state: &StoreState) {
        if self.epoch != state.epoch {
            self.quarantine = self.quarantine.min(state.event);
            for share in self.replicas.values_mut() {
                share.renewed = share.renewed.min(state.event);
            }
        }
    }

    /// Returns true while more may be leased than the store knows. During this quarantine, it
    /// grants only rates, and accepts the retained amounts of replicas that it does not know.
    fn is_quarantined(&self, state: &StoreState) -> bool {
        state.expired_event < state.first_event.max(self.quarantine)
    }

    /// Ends a quarantine whose time is over. A budget then has at least the level that its replicas
    /// know; a bucket keeps its level, which is too low by no more than one bucket.
    fn recover(&mut self, state: &StoreState, spec: &LeasedLimitSpec) {
        if self.epoch == state.epoch || self.is_quarantined(state) {
            return;
        }
        self.epoch = state.epoch;
        self.quarantine = 0;
        if let LeasedLimitSpec::Budget { accounted, .. } = *spec {
            self.level = self.level.max(accounted);
        }
    }

    /// Starts a quarantine of this limit: its data was lost, but not the data of other limits.
    fn start_quarantine(&mut self, state: &StoreState) {
        if !self.is_quarantined(state) {
            self.epoch = 0;
            self.quarantine = state.event;
        }
    }

    /// Drains the level up to the time `at`.
    fn drain(&mut self, at: u64, per_minute: u64) {
        let elapsed = at.saturating_sub(self.at);
        self.at = at;
        let whole = (per_minute / MINUTE).saturating_mul(elapsed);
        let parts = (per_minute % MINUTE)
            .saturating_mul(elapsed)
            .saturating_add(self.remainder);
        match self.level.checked_sub(whole.saturating_add(parts / MINUTE)) {
            Some(level @ 1..) => {
                self.level = level;
                self.remainder = parts % MINUTE;
            }
            Some(0) | None => {
                self.level = 0;
                self.remainder = 0;
            }
        }
    }

    /// Removes the replicas whose lease is over. Amounts that they may have spent count as spent.
    fn expire(&mut self, state: &StoreState, spec: &LeasedLimitSpec) {
        let mut spent = 0;
        self.replicas.retain(|_, share| {
            let over = share.renewed <= state.expired_event;
            spent += if over { share.held } else { 0 };
            !over
        });
        if spec.is_consumed() {
            self.level = (self.level + spent).min(MAX_AMOUNT);
        }
    }

    /// Returns true if the lease that a request continues is over. Such a request has been on its
    /// way for a long time, and could undo later requests. The first request of an incarnation
    /// continues no lease.
    fn is_stale(&self, request: &LeaseRequest, call: &ExchangeRequest, state: &StoreState) -> bool {
        if request.acked == 0 {
            return false;
        }
        let is_of_life = call.proof.epoch == state.epoch;
        let lease = call.lease + call.lease / 10;
        if is_of_life && call.proof.elapsed_ms.saturating_add(lease) < state.proven_ms {
            return true;
        }
        // A limit has the current epoch once its quarantine is over, and then all leases of earlier
        // epochs are over too. Within an epoch, the spending of each replica is known until its
        // lease is over.
        let is_forgotten = request.spec.is_consumed() && !self.replicas.contains_key(&call.replica);
        self.epoch == state.epoch && (!is_of_life || is_forgotten)
    }

    /// Records the retained amount and the spending of the requesting replica, and computes the
    /// amount that it has returned. If this request or a later one was handled already, this
    /// changes nothing and returns `None`.
    fn record_claim(
        &mut self,
        request: &LeaseRequest,
        replica: u64,
        state: &StoreState,
    ) -> Option<u64> {
        let known = self.replicas.remove(&replica);
        let late = known.as_ref().is_some_and(|known| request.seq <= known.seq);
        let (mut share, spent) = match known {
            Some(known) if late || known.incarnation == request.incarnation => {
                let spent = difference(request.used, known.used);
                (known, spent)
            }
            other => {
                let forfeited = other.map_or(0, |before| before.held);
                if request.spec.is_consumed() {
                    self.level = (self.level + forfeited).min(MAX_AMOUNT);
                }
                (ReplicaShare::new(request), request.unacked.cast_signed())
            }
        };
        let mut returned = None;
        if !late {
            self.level = self.level.saturating_add_signed(spent).min(MAX_AMOUNT);
            let stored = share.held.saturating_add_signed(-spent);
            if request.retained > stored {
                self.start_quarantine(state);
            }
            returned = Some(stored.saturating_sub(request.retained));
            share.held = request.retained;
            share.used = request.used;
            share.seq = request.seq;
            share.renewed = state.event;
        }
        self.replicas.insert(replica, share);
        returned
    }

    /// Grants the wanted amount as far as it is available, and removes a replica that no longer has
    /// a share of the limit. If `returned` is `None`, nothing is granted in addition.
    fn reply(
        &mut self,
        request: &LeaseRequest,
        call: &ExchangeRequest,
        state: &StoreState,
        returned: Option<u64>,
    ) -> (LeaseGrant, bool) {
        let quarantined = self.is_quarantined(state) && !request.spec.is_rate();
        let replicas = self.replicas.len() as u64;
        let waits =
            |(replica, share): &(&u64, &ReplicaShare)| **replica != call.replica && share.short > 0;
        let waiting_replicas = self.replicas.iter().filter(waits).count() as u64;
        let held: u64 = self.replicas.values().map(|share| share.held).sum();
        let mut available = match quarantined {
            true => 0,
            false => request.spec.capacity().saturating_sub(self.level + held),
        };
        let known = self.replicas.remove(&call.replica);
        let is_known = known.is_some();
        let mut share = known.unwrap_or(ReplicaShare::new(request));
        let mut noticed = false;
        if let Some(returned) = returned {
            let elsewhere = held > share.held;
            let leased = lend(request, available, replicas, waiting_replicas);
            available -= leased;
            share.held += leased;
            let waited = share.short > 0;
            share.short = request.waiting.saturating_sub(leased);
            // One notice for each wait: otherwise two waiting replicas would make each other send
            // requests in turn.
            let waits_for_others = share.short > 0 && !waited && elsewhere;
            let gives_to_others = waiting_replicas > 0 && available > 0 && returned > 0;
            noticed = !quarantined && (waits_for_others || gives_to_others);
        }
        let grant = LeaseGrant {
            seq: share.seq,
            held: share.held,
            available,
            level: self.level,
            replicas,
            waiting_replicas,
            quarantined,
            duration: Duration::from_millis(call.lease),
        };
        let has_part = match returned {
            None => is_known,
            Some(_) => request.spec.is_consumed() || share.held > 0 || share.short > 0,
        };
        if has_part {
            self.replicas.insert(call.replica, share);
        }
        (grant, noticed)
    }
}

impl ReplicaShare {
    /// Creates the empty share of a new incarnation.
    fn new(request: &LeaseRequest) -> Self {
        Self {
            held: 0,
            used: 0,
            seq: 0,
            incarnation: request.incarnation,
            renewed: 0,
            short: 0,
        }
    }
}

/// Returns the amount to grant to a request: at least `smallest_waiting`, or nothing.
fn lend(request: &LeaseRequest, available: u64, replicas: u64, waiting_replicas: u64) -> u64 {
    if available < request.smallest_waiting {
        return 0;
    }
    let part = available / (2 * replicas);
    // The cap on amounts that are requested in advance. It does not apply to waiting requests.
    let fair = match request.spec {
        _ if waiting_replicas > 0 => 0,
        LeasedLimitSpec::Permits { .. } => available,
        LeasedLimitSpec::Bucket { per_minute, .. } => part.min(per_minute / ALLOWANCES),
        LeasedLimitSpec::Budget { .. } => part,
    };
    available.min(request.waiting.max(request.wanted.min(fair)))
}

/// Returns `used - before`; both are counted modulo [`USED_MODULUS`].
fn difference(used: u64, before: u64) -> i64 {
    const HALF: i64 = (USED_MODULUS / 2) as i64;
    let difference = (used % USED_MODULUS) as i64 - (before % USED_MODULUS) as i64;
    if difference < -HALF {
        difference + 2 * HALF
    } else if difference >= HALF {
        difference - 2 * HALF
    } else {
        difference
    }
}

/// Milliseconds in a minute.
const MINUTE: u64 = 60_000;
/// Half seconds in a minute: no more than the rate of half a second is granted in advance.
const ALLOWANCES: u64 = 120;
