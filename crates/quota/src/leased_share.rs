//! The share of one replica in a leased limit, as a state machine without I/O.

mod rate;
mod state;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::rate::SpendingRate;
use self::state::{ExchangeState, StoreState, WaiterState};
use crate::exchange::{LeaseGrant, LeaseRequest, LeasedLimitSpec, MAX_AMOUNT, USED_MODULUS};

/// The reaction of a limit when its lease is over and the store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailMode {
    /// Nothing is admitted.
    Closed,
    /// A part of the permits is never leased, and belongs to the replicas in equal parts at all
    /// times. Applies to permits; buckets and budgets are closed.
    Floor {
        /// The part that is never leased, in percent of the cap.
        percent: u8,
        /// The number of replicas. If more of them run, the cap can be exceeded.
        replicas: u32,
    },
    /// Everything is admitted and counted.
    Open,
}

/// The settings of the leases of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// The reaction when the store does not answer.
    pub mode: FailMode,
    /// The duration of leases, the same for all replicas.
    pub lease: Duration,
    /// The reaction of running requests when the lease of their permits is lost.
    pub lost_lease: LostLease,
}

/// The reaction of running requests when the lease of their permits is lost: the store may grant
/// the same permits to other replicas then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LostLease {
    /// They go on. Those that take less than half of a lease have ended by then, because permits
    /// are given out only in the first half.
    #[default]
    Finish,
    /// They have to end before.
    End,
}

/// An amount that a request has taken from a [`LeasedShare`], to pass to [`LeasedShare::settle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what was taken has to be settled"]
pub struct ShareReservation {
    /// The amount that was taken.
    pub amount: u64,
    era: u32,
}

/// The share of one replica in a limit: the amount that it may give out.
///
/// The time is a [`Duration`] since an arbitrary start, from a clock that never goes back and goes
/// on while the machine sleeps. The caller sends each request that [`poll`](Self::poll) returns to
/// the store, and reports the result by [`on_grant`](Self::on_grant) or
/// [`on_no_answer`](Self::on_no_answer).
///
/// The lease counts from before its renewal was sent, less a margin for clocks of different rates.
/// When the lease is over, the share is empty and sends a new request, because the store may have
/// granted the held amount to other replicas since. Permits are given out only while at least half
/// of the lease is left, so that shorter requests have ended by then; a renewal follows at a third
/// of it.
#[derive(Debug)]
pub struct LeasedShare {
    limit: Arc<str>,
    spec: LeasedLimitSpec,
    fail: AppliedFailMode,
    /// True if requests have to end before their lease.
    ends_requests: bool,
    lease_millis: u32,
    /// The amount that the last grant has left, less what the last request has returned; `used` was
    /// `used_at_request` at that time.
    granted: u64,
    used_at_request: u64,
    used: u64,
    /// `used` as of the last request that was granted.
    acked_used: u64,
    in_use: u64,
    /// The most in use since the last request to the store; for permits.
    peak_in_use: u64,
    /// The rate of the spending; for buckets and budgets.
    pace: SpendingRate,
    waiting: u64,
    smallest_waiting: u64,
    seq: u64,
    lease: Option<Lease>,
    incarnation: u32,
    /// Counts the times after which the store may have counted a reservation in another way.
    era: u32,
    /// Times are in microseconds, which take half the memory of durations.
    requested_at: u64,
    renew_at: u64,
    exchange: ExchangeState,
    store: StoreState,
    waiters: WaiterState,
    /// True if little of the limit is available: idle amounts are returned at once.
    scarce: bool,
    /// True if a lease was lost while something was in use, until that is reported.
    unreported_loss: bool,
}

/// A lease that was granted.
#[derive(Clone, Copy, Debug)]
struct Lease {
    /// The number of the request that was granted.
    seq: NonZeroU64,
    /// The time at which the lease is over, in microseconds.
    deadline: u64,
}

/// A fail mode in the form in which it is applied.
#[derive(Clone, Copy, Debug)]
enum AppliedFailMode {
    Closed,
    Floor(u32),
    Open,
}

impl LeasedShare {
    /// Creates an empty share. `lease` is the duration of leases, the same for all replicas, in
    /// whole milliseconds.
    #[must_use]
    pub fn new(limit: Arc<str>, spec: LeasedLimitSpec, mode: FailMode, lease: Duration) -> Self {
        let (spec, fail) = terms(spec, mode);
        Self {
            limit,
            spec,
            fail,
            ends_requests: false,
            lease_millis: u32::try_from(lease.as_millis()).unwrap_or(u32::MAX),
            granted: 0,
            used_at_request: 0,
            used: 0,
            acked_used: 0,
            in_use: 0,
            peak_in_use: 0,
            pace: SpendingRate::default(),
            waiting: 0,
            smallest_waiting: 0,
            seq: 0,
            lease: None,
            incarnation: 0,
            era: 0,
            requested_at: 0,
            renew_at: 0,
            exchange: ExchangeState::Idle,
            store: StoreState::Granting,
            waiters: WaiterState::None,
            scarce: false,
            unreported_loss: false,
        }
    }

    /// Sets whether requests must not outlive their lease. Then the next leases end earlier, by the
    /// time between two checks, which are [`CHECKS_OF_LEASE`] in a lease, so that requests are ended
    /// before their lease is really over.
    pub fn set_ends_requests(&mut self, ends_requests: bool) {
        self.ends_requests = ends_requests;
    }

    /// Replaces the limit by another one of the same kind.
    pub fn set_terms(&mut self, spec: LeasedLimitSpec, mode: FailMode) {
        (self.spec, self.fail) = terms(spec, mode);
    }

    /// Returns the limit, without the part that is never leased.
    #[must_use]
    pub fn spec(&self) -> LeasedLimitSpec {
        self.spec
    }

    /// Takes `amount`, or returns `None` and notes that a request waits for it. If less than half
    /// of the lease is left, leased permits are not taken before it is renewed.
    ///
    /// After `None`, poll the share, and try again after the grant, or refuse the request if the
    /// store [is unreachable](Self::is_degraded).
    pub fn take(&mut self, amount: u64, now: Duration) -> Option<ShareReservation> {
        let now = micros(now);
        self.expire(now);
        if self.admissible(now) < amount && !self.admits_all() {
            // A held amount only has to wait for the renewal.
            if self.available() < amount {
                self.waiting = self.waiting.saturating_add(amount).min(MAX_AMOUNT);
                self.smallest_waiting = match self.smallest_waiting {
                    0 => amount,
                    smallest_waiting => smallest_waiting.min(amount),
                };
            }
            return None;
        }
        self.in_use = self.in_use.saturating_add(amount);
        if self.spec.is_consumed() {
            self.used = self.used.saturating_add(amount);
        } else {
            self.peak_in_use = self.peak_in_use.max(self.in_use);
        }
        if self.held() <= self.leased_in_use() {
            self.end_reservation_for_waiters();
        }
        Some(ShareReservation {
            amount,
            era: self.era,
        })
    }

    /// Replaces the reserved amount by the amount really spent, which can be larger. Permits come
    /// back, whatever `spent` is.
    ///
    /// If the lease was lost in between, or the store has lost its data, then the store counts all
    /// of the reservation as spent, and only the excess over it is counted in addition.
    pub fn settle(&mut self, taken: ShareReservation, spent: u64) {
        self.in_use = self.in_use.saturating_sub(taken.amount);
        self.end_reservation_for_waiters();
        if !self.spec.is_consumed() {
            return;
        }
        if spent >= taken.amount {
            self.used = self.used.saturating_add(spent - taken.amount);
        } else if taken.era == self.era && !self.store.is_quarantined() {
            self.used = self.used.saturating_sub(taken.amount - spent);
        }
    }

    /// Returns an amount that was taken just before, as if it had never been taken. Once the share
    /// was polled, [`settle`](Self::settle) returns it: the store may have counted it by then.
    pub fn release(&mut self, taken: ShareReservation) {
        self.in_use = self.in_use.saturating_sub(taken.amount);
        self.end_reservation_for_waiters();
        if self.spec.is_consumed() {
            self.used = self.used.saturating_sub(taken.amount);
        }
    }

    /// Returns the request that has to be sent to the store now, if any.
    ///
    /// Call [`take_loss`](Self::take_loss) before. While a request is in flight, this function
    /// returns `None`, so that requests coalesce. Once it has returned a request, the amount that
    /// the request returns to the store can no longer be taken.
    pub fn poll(&mut self, now: Duration) -> Option<LeaseRequest> {
        let now = micros(now);
        self.expire(now);
        let is_early = now < self.requested_at + self.lease_micros() / RETRIES_PER_LEASE;
        if !is_early {
            self.end_reservation_for_waiters();
        }
        let may_request = !(self.waiters == WaiterState::Unserved && is_early)
            && (!self.store.is_unreachable() || now >= self.renew_at);
        let is_wanted = self.waiting > 0 && may_request;
        let is_due = self.is_active() && now >= self.renew_at;
        let is_idle = self.exchange == ExchangeState::Idle;
        if !is_idle || !(is_wanted || is_due || self.should_exchange()) {
            return None;
        }
        let target = self.desired_amount(now);
        let retained = self.held().min(target.max(self.leased_in_use()));
        let wanted = (target - target.min(retained)).max(self.waiting);
        self.granted = retained;
        self.used_at_request = self.used;
        self.peak_in_use = self.in_use;
        self.seq += 1;
        self.exchange = ExchangeState::InFlight {
            for_waiters: self.waiting > 0,
            noticed: false,
        };
        self.waiters = WaiterState::None;
        self.requested_at = now;
        Some(LeaseRequest {
            limit: Arc::clone(&self.limit),
            spec: self.spec,
            seq: self.seq,
            acked: self.lease.map_or(0, |lease| lease.seq.get()),
            incarnation: u64::from(self.incarnation),
            retained,
            used: self.used % USED_MODULUS,
            unacked: self.used.saturating_sub(self.acked_used).min(MAX_AMOUNT),
            wanted,
            waiting: self.waiting,
            smallest_waiting: self.smallest_waiting,
        })
    }

    /// Applies the grant of the store for the last request. Grants for earlier requests are
    /// ignored.
    ///
    /// Afterwards let the waiting requests try again, before the share is polled.
    pub fn on_grant(&mut self, grant: &LeaseGrant, now: Duration) {
        let now = micros(now);
        // First: a grant that arrives after the lease that its request has claimed cannot prolong
        // it.
        self.expire(now);
        let Some(seq) = NonZeroU64::new(grant.seq).filter(|seq| self.is_in_flight(seq.get()))
        else {
            return;
        };
        let lease = micros(grant.duration).min(self.lease_micros());
        let early = match self.ends_requests {
            true => lease / u64::from(CHECKS_OF_LEASE),
            false => 0,
        };
        let deadline = self.requested_at + (lease - lease / SAFETY_MARGIN - early);
        if now >= deadline {
            return self.fail(grant.seq, now);
        }
        self.waiters = self.exchange.waiters(grant.held > self.granted);
        self.exchange = ExchangeState::Idle;
        self.lease = Some(Lease { seq, deadline });
        self.acked_used = self.used_at_request;
        self.granted = grant.held;
        self.renew_at = self.requested_at + lease / RENEWALS_PER_LEASE;
        if self.store.is_quarantined() || grant.quarantined {
            self.era = self.era.wrapping_add(1);
        }
        self.store = match grant.quarantined {
            true => StoreState::Quarantined,
            false => StoreState::Granting,
        };
        self.scarce =
            grant.waiting_replicas > 0 || grant.available < self.spec.capacity() / SCARCE_BELOW;
        self.waiting = 0;
        self.smallest_waiting = 0;
    }

    /// Returns the [key](LeaseRequest::key) of the limit of this share.
    #[must_use]
    pub fn key(&self) -> String {
        self.spec.key(&self.limit)
    }

    /// Returns true if `key` is the [key](LeaseRequest::key) of the limit of this share, in any
    /// window.
    #[must_use]
    pub fn matches_key(&self, key: &str) -> bool {
        let rest = key.strip_prefix(&*self.limit);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
    }

    /// Applies a notice that another replica waits for something of this limit, or has returned
    /// something. Poll the share afterwards: it returns idle amounts, and requests the amount that
    /// it needs.
    pub fn on_notice(&mut self) {
        self.scarce = true;
        if let ExchangeState::InFlight { noticed, .. } = &mut self.exchange {
            *noticed = true;
        }
        if self.waiters == WaiterState::Unserved {
            self.waiters = WaiterState::None;
        }
    }

    /// Notes that the request numbered `seq` was not answered. The next one is sent a tenth of a
    /// renewal later.
    pub fn on_no_answer(&mut self, seq: u64, now: Duration) {
        self.fail(seq, micros(now));
    }

    fn fail(&mut self, seq: u64, now: u64) {
        if self.is_in_flight(seq) {
            self.end_exchange();
            self.store = self.store.after_no_answer();
            self.waiting = 0;
            self.smallest_waiting = 0;
            self.renew_at = now + self.lease_micros() / RENEWALS_PER_LEASE / 10;
        }
    }

    /// Returns true if the request with this number is in flight.
    fn is_in_flight(&self, seq: u64) -> bool {
        self.exchange != ExchangeState::Idle && seq == self.seq
    }

    /// Ends an exchange without a grant, if there is one.
    fn end_exchange(&mut self) {
        if self.exchange != ExchangeState::Idle {
            self.waiters = self.exchange.waiters(false);
            self.exchange = ExchangeState::Idle;
        }
    }

    /// Lets the grant for waiting requests be returned like any other.
    fn end_reservation_for_waiters(&mut self) {
        if self.waiters == WaiterState::Served {
            self.waiters = WaiterState::None;
        }
    }

    /// Returns true once after a lease was lost while something was taken and not settled.
    ///
    /// Requests that must not outlive their lease have to be ended then.
    pub fn take_loss(&mut self, now: Duration) -> bool {
        let now = micros(now);
        self.expire(now);
        std::mem::take(&mut self.unreported_loss)
    }

    /// Returns true if the share has to be polled again a while later: requests wait for an amount
    /// that is not being requested, because the store had nothing a short time ago, or have not yet
    /// taken the amount that was granted for them.
    #[must_use]
    pub fn needs_retry(&self) -> bool {
        let is_wanted = self.waiting > 0 || self.waiters == WaiterState::Served;
        is_wanted && self.exchange == ExchangeState::Idle
    }

    /// Returns true if the share should be polled now, although no request waits and no renewal is
    /// due: it has an idle amount that others may need, or little is left of a rate or a budget.
    #[must_use]
    pub fn should_exchange(&self) -> bool {
        let should_exchange = match self.scarce {
            true => self.held() > self.leased_in_use() && self.waiters != WaiterState::Served,
            false => self.spec.is_consumed() && self.held() < self.granted / REFILL_BELOW,
        };
        should_exchange && self.exchange == ExchangeState::Idle && !self.store.is_unreachable()
    }

    /// Returns the time at which the share has to be polled, or `None` if it is unused. A share
    /// that is unused and has nothing [in use](Self::in_use) can be dropped.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let is_idle = self.exchange == ExchangeState::Idle;
        let renewal = (self.is_active() && is_idle).then_some(self.renew_at);
        let deadline = self.lease.map(|lease| lease.deadline);
        let next = renewal.into_iter().chain(deadline).min();
        next.map(Duration::from_micros)
    }

    /// Returns true if the share can be dropped: nothing is in use, no request waits for anything,
    /// and the store knows all spending.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        let is_idle = self.in_use == 0 && self.waiting == 0 && self.exchange == ExchangeState::Idle;
        is_idle && self.next_deadline().is_none()
    }

    /// Sets the amount that the accounting store knows to be spent in the budget window.
    pub fn set_accounted(&mut self, spent: u64) {
        if let LeasedLimitSpec::Budget { accounted, .. } = &mut self.spec {
            *accounted = spent.min(MAX_AMOUNT);
        }
    }

    /// Returns the amount that the accounting store knows to be spent in the budget window.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        match self.spec {
            LeasedLimitSpec::Budget { accounted, .. } => accounted,
            LeasedLimitSpec::Permits { .. } | LeasedLimitSpec::Bucket { .. } => 0,
        }
    }

    /// Returns the amount that can be taken without a request to the store, if the lease still
    /// runs.
    #[must_use]
    pub fn available(&self) -> u64 {
        let out = match self.spec.is_consumed() {
            true => 0,
            false => self.in_use,
        };
        (self.held() + self.floor_permits()).saturating_sub(out)
    }

    /// Returns the amount that is taken and not settled, including amounts taken under a lost
    /// lease.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.in_use
    }

    /// Returns the amount that was spent or taken since the last request to the store.
    #[must_use]
    pub fn unreported(&self) -> u64 {
        self.used.saturating_sub(self.used_at_request)
    }

    /// Returns the amount that is granted to this replica and not spent, including permits in use.
    #[must_use]
    pub fn held(&self) -> u64 {
        (self.granted + self.used_at_request).saturating_sub(self.used)
    }

    /// Returns the time at which the lease is over, if there is one.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.lease
            .map(|lease| Duration::from_micros(lease.deadline))
    }

    /// Returns true while the lease runs.
    #[must_use]
    pub fn is_leased(&self, now: Duration) -> bool {
        self.lease.is_some_and(|lease| micros(now) < lease.deadline)
    }

    /// Returns true if the store did not answer the last request. A request of a client that finds
    /// nothing to take is then refused at once.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.store.is_unreachable()
    }

    /// Returns true while the store grants nothing, because it may have forgotten its leases.
    #[must_use]
    pub fn is_quarantined(&self) -> bool {
        self.store.is_quarantined()
    }

    /// Returns true if a request of a client that finds too little should wait for a grant.
    ///
    /// While the store may have forgotten its leases, requests wait for only one exchange in a
    /// fiftieth of a lease, since the store grants nothing in most of them. Without any exchange,
    /// the end of this time would not be noticed.
    #[must_use]
    pub fn may_wait_for_grant(&self, now: Duration) -> bool {
        let asked_recently = self.store.is_quarantined()
            && micros(now) < self.requested_at + self.lease_micros() / QUARANTINE_PROBES_PER_LEASE;
        !self.store.is_unreachable() && !asked_recently
    }

    /// Empties the share if its lease is over.
    fn expire(&mut self, now: u64) {
        if self.lease.is_none_or(|lease| now < lease.deadline) {
            return;
        }
        // The store counts the granted amount as spent, but does not know the spending above it.
        self.used = self
            .used
            .saturating_sub(self.used_at_request + self.granted);
        self.used_at_request = 0;
        self.granted = 0;
        self.lease = None;
        self.acked_used = 0;
        self.incarnation = self.incarnation.wrapping_add(1);
        self.era = self.era.wrapping_add(1);
        self.end_exchange();
        self.scarce = false;
        self.unreported_loss = self.in_use > 0;
        self.pace.begin(self.used, now);
        self.renew_at = now;
    }

    /// Returns the duration of a lease in microseconds.
    fn lease_micros(&self) -> u64 {
        u64::from(self.lease_millis) * 1_000
    }

    /// Returns true if this replica has to send a request at the next renewal.
    fn is_active(&self) -> bool {
        self.held() > 0
            || self.in_use > self.floor_permits()
            || self.used != self.used_at_request
            || self.waiters == WaiterState::Unserved
    }

    /// Returns the amount that can be taken now. It is less than the [available](Self::available)
    /// amount if the rest of the lease is for the requests that run.
    fn admissible(&self, now: u64) -> u64 {
        let late = now + self.lease_micros() / LAST_PART;
        let is_late = self.lease.is_none_or(|lease| late >= lease.deadline);
        match is_late && !self.spec.is_consumed() && !matches!(self.fail, AppliedFailMode::Open) {
            true => self.floor_permits().saturating_sub(self.in_use),
            false => self.available(),
        }
    }

    /// Returns the permits that this replica has without a lease.
    fn floor_permits(&self) -> u64 {
        match self.fail {
            AppliedFailMode::Floor(floor_permits) => u64::from(floor_permits),
            AppliedFailMode::Closed | AppliedFailMode::Open => 0,
        }
    }

    /// Returns the permits in use that have to be leased.
    fn leased_in_use(&self) -> u64 {
        match self.spec.is_consumed() {
            true => 0,
            false => self.in_use.saturating_sub(self.floor_permits()),
        }
    }

    /// Returns true if requests are admitted without a lease.
    fn admits_all(&self) -> bool {
        self.store.is_unreachable()
            && self.lease.is_none()
            && matches!(self.fail, AppliedFailMode::Open)
    }

    /// Returns the amount that this replica would like to hold.
    fn desired_amount(&mut self, now: u64) -> u64 {
        let expected = if self.spec.is_consumed() {
            let span = self.lease_micros() / PREFETCHES_PER_LEASE;
            self.pace.expected(self.used, now, span).min(MAX_AMOUNT)
        } else {
            self.peak_in_use.saturating_sub(self.floor_permits())
        };
        if self.scarce {
            return self.leased_in_use();
        }
        match expected {
            0 => self.leased_in_use(),
            expected => (expected + expected / 4 + 1).min(self.spec.capacity()),
        }
    }
}

/// Splits a limit into the part that is leased and the part that each replica always has.
fn terms(mut spec: LeasedLimitSpec, mode: FailMode) -> (LeasedLimitSpec, AppliedFailMode) {
    let fail = match (mode, &mut spec) {
        (FailMode::Floor { percent, replicas }, LeasedLimitSpec::Permits { cap }) => {
            let replicas = u64::from(replicas.max(1));
            let floor_permits = cap.saturating_mul(u64::from(percent.min(100))) / 100 / replicas;
            let floor_permits = u32::try_from(floor_permits).unwrap_or(u32::MAX);
            *cap -= u64::from(floor_permits) * replicas;
            AppliedFailMode::Floor(floor_permits)
        }
        (FailMode::Closed | FailMode::Floor { .. }, _) => AppliedFailMode::Closed,
        (FailMode::Open, _) => AppliedFailMode::Open,
    };
    (spec, fail)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Renewals in one lease.
const RENEWALS_PER_LEASE: u64 = 3;
/// The part of a lease in which no permits are given out, if it was not renewed before: at its end.
const LAST_PART: u64 = 2;
/// The number of times in a lease at which the owner of a share checks whether it was
/// [lost](LeasedShare::take_loss).
pub const CHECKS_OF_LEASE: u32 = 30;
/// The part of a lease (20 ms by default) after which a replica sends another request for waiting
/// requests, if the store had nothing for them. A notice lets it do so sooner.
const RETRIES_PER_LEASE: u64 = 500;
/// The part of a lease (200 ms by default) in which requests wait for one exchange only with a
/// store that may have forgotten its leases.
const QUARANTINE_PROBES_PER_LEASE: u64 = 50;
/// The part of a grant below which the next one is requested.
const REFILL_BELOW: u64 = 4;
/// The part of a lease by which a replica ends it early, for clocks that differ in their rates.
const SAFETY_MARGIN: u64 = 50;
/// The part of the capacity below which it is scarce: idle amounts are returned at once.
const SCARCE_BELOW: u64 = 5;
/// The part of a lease (500 ms by default) for which tokens and money are requested in advance.
const PREFETCHES_PER_LEASE: u64 = 20;

#[cfg(test)]
mod tests;
