//! The rules of a lease store, in memory. `exchange.lua` implements the same rules for a server.

mod limit;

use std::collections::BTreeMap;

use crate::clock::ElapsedProof;
use limit::Limit;
use quota::{LeaseGrant, LeaseRequest};

/// The lease requests of one replica that reach a store together.
#[derive(Clone, Debug)]
pub struct ExchangeRequest {
    /// The replica, by a random number that each process draws when it starts.
    pub replica: u64,
    /// The time that has passed in the store, as far as the replica can prove it.
    pub proof: ElapsedProof,
    /// The duration of leases in milliseconds.
    pub lease: u64,
    /// The lease requests.
    pub requests: Vec<LeaseRequest>,
}

/// The response of a store to an [`ExchangeRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeResponse {
    /// The epoch of the store.
    pub epoch: u64,
    /// The proven time of the store, in milliseconds.
    pub at: u64,
    /// The number of the event that this exchange is.
    pub event: u64,
    /// The grants, in the order of the lease requests.
    pub replies: Vec<LeaseGrant>,
}

/// A lease store in memory.
///
/// An *epoch* of a store is a time in which the store loses no data. A new epoch begins when the
/// store finds no store state, or the state of another server. All leases of the epoch before are
/// over after one lease. Until then, the store is in quarantine: it accepts the amounts that
/// replicas say they retain, and grants only rates, because it can have forgotten no more than one
/// bucket of each rate.
///
/// ```
/// # use std::time::Duration;
/// # use quota::{FailMode, LeasedLimitSpec, LeasedShare};
/// # use sluicegate_lease::{ElapsedProof, ExchangeRequest, ReferenceStore};
/// let (now, lease) = (Duration::ZERO, Duration::from_secs(10));
/// let spec = LeasedLimitSpec::Permits { cap: 8 };
/// let mut share = LeasedShare::new("q0/team-a".into(), spec, FailMode::Closed, lease);
/// let mut store = ReferenceStore::settled();
/// assert!(share.take(1, now).is_none(), "nothing is leased yet");
/// let requests = share.poll(now).into_iter().collect();
/// let proof = ElapsedProof::default();
/// let call = ExchangeRequest { replica: 1, proof, lease: 10_000, requests };
/// let response = store.exchange(&call, 0, 0);
/// share.on_grant(&response.replies[0], now);
/// let taken = share.take(1, now).expect("a permit is leased");
/// share.settle(taken, 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ReferenceStore {
    state: Option<StoreState>,
    limits: BTreeMap<String, Limit>,
    notices: Vec<String>,
}

#[derive(Clone, Debug)]
struct StoreState {
    server: u64,
    epoch: u64,
    /// The event with which the epoch began.
    first_event: u64,
    /// The latest event.
    event: u64,
    /// The proven time in milliseconds. It lags behind the true time, and can catch up at once.
    proven_ms: u64,
    /// The time in milliseconds by which buckets drain. It passes with the server's clock, but
    /// never gets ahead of the proven time, whatever the clock does.
    drained_ms: u64,
    /// The server's clock at the latest event, in milliseconds.
    server_clock_ms: u64,
    /// The latest event that is proven to be one lease ago. Leases that began with it or before are
    /// over.
    expired_event: u64,
}

impl ReferenceStore {
    /// Creates a store that knows that nothing was granted before, as within one process.
    #[must_use]
    pub fn settled() -> Self {
        let state = StoreState {
            server: 0,
            epoch: SINGLE_PROCESS_EPOCH,
            first_event: 0,
            event: 1,
            proven_ms: 0,
            drained_ms: 0,
            server_clock_ms: 0,
            expired_event: 0,
        };
        Self {
            state: Some(state),
            ..Self::default()
        }
    }

    /// Returns the limits about which the latest exchange notifies the other replicas, by their
    /// names in the store. The replica waits for an amount of such a limit, or it has returned an
    /// amount for which others wait.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Handles an exchange, and returns the response. `server` identifies the run of the server,
    /// and `now` is its clock in microseconds, which may be set at any time.
    pub fn exchange(&mut self, call: &ExchangeRequest, server: u64, now: u64) -> ExchangeResponse {
        let mut state = match self.state.take() {
            Some(state) if state.server == server => state,
            other => StoreState::new(other.as_ref(), server, now),
        };
        state.advance(call.proof, now / 1000);
        self.notices.clear();
        let replies = call.requests.iter().map(|request| {
            let limit = self.limits.entry(request.key()).or_default();
            let (reply, noticed) = limit.exchange(request, call, &state);
            if limit.is_empty(&state) {
                self.limits.remove(&request.key());
            }
            self.notices.extend(noticed.then(|| request.key()));
            reply
        });
        let answer = ExchangeResponse {
            replies: replies.collect(),
            epoch: state.epoch,
            at: state.proven_ms,
            event: state.event,
        };
        self.state = Some(state);
        answer
    }
}

impl StoreState {
    /// Counts one event, and adds the time that has passed before it.
    fn advance(&mut self, proof: ElapsedProof, server_clock_ms: u64) {
        self.event += 1;
        if proof.epoch == self.epoch {
            self.proven_ms = self.proven_ms.max(proof.elapsed_ms);
            self.expired_event = self.expired_event.max(proof.expired_event);
        }
        let passed = server_clock_ms.saturating_sub(self.server_clock_ms);
        self.drained_ms = self.proven_ms.min(self.drained_ms.saturating_add(passed));
        self.server_clock_ms = server_clock_ms;
    }

    /// Begins a new epoch. Time and event numbers go on if the state of an earlier epoch is known.
    fn new(before: Option<&Self>, server: u64, epoch: u64) -> Self {
        let event = before.map_or(0, |state| state.event) + 1;
        Self {
            server,
            epoch,
            first_event: event,
            event,
            proven_ms: before.map_or(0, |state| state.proven_ms),
            drained_ms: before.map_or(0, |state| state.drained_ms),
            server_clock_ms: epoch / 1000,
            expired_event: 0,
        }
    }
}

/// The epoch of a store within the process, which never loses its data.
pub(crate) const SINGLE_PROCESS_EPOCH: u64 = 1;

#[cfg(test)]
mod tests;
