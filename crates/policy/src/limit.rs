//! The limits of requests: the concurrency limits of the process, and the quotas of the
//! configuration. Both are counted in one ledger ([`quota::SharedLedger`]).

mod charge;
mod estimate;
pub mod lease_client;
mod permit;
mod queues;
pub mod quota_headers;
mod quota_state;
mod quotas;
mod reserved;
mod waiting;

use std::sync::Arc;

use quota::{
    Caps, Claim, Demand, LeaseGrant, LimitId, Money, Now, PendingRequest, Refused, Status, Terms,
};
use smallvec::SmallVec;
use tokio::time::Instant;

pub use self::charge::{Attempt, Charge, Counts, FinalUsage};
pub use self::estimate::{image_prompt_tokens, prompt_tokens};
use self::lease_client::LeaseClient;
pub use self::permit::{Permit, Reservation};
use self::queues::{Queues, QueuesToWake};
pub use self::quota_state::QuotaState;
pub use self::quotas::{OWN_LIMITS, Quotas};
use self::reserved::Estimate;
pub use self::reserved::{Answers, Pictures, Reserved};
pub use self::waiting::Decision;
use crate::clock;
use crate::prices::TargetPrices;

/// Admits requests within all limits that apply to them, lets them wait, or refuses them.
#[derive(Debug)]
pub struct Limiter {
    ledger: quota::SharedLedger,
    /// The limits of the process: in total, and for each key.
    process: [LimitId; 2],
    caps: [Caps; 2],
    clock: Clock,
    /// The client of the lease store, if the quotas are shared with other gateways.
    lease_client: Option<Arc<LeaseClient>>,
    queues: Arc<Queues>,
}

/// The clock of the ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// The clock of the runtime, from this time on.
    Runtime(Instant),
    /// The time since the machine started, including the time in which it was suspended: leases go
    /// on then.
    Boot,
}

/// A request that asks for admission.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest<'a> {
    /// The name of its key.
    pub key: &'a str,
    /// The model that it names.
    pub model: &'a str,
    /// The quotas of its policy.
    pub quotas: &'a Quotas,
    /// The prices of the targets that may answer.
    pub prices: &'a TargetPrices,
    /// The tokens that each answer of a request without a limit has at most.
    pub answer_tokens: u64,
    /// True if its usage is journaled, with an estimate until it is known.
    pub is_journaled: bool,
}

impl AdmissionRequest<'_> {
    /// Estimates the usage of the request, if any limit or the journal needs it. That takes time in
    /// proportion to its body, and is done before the ledger is locked.
    fn estimate(&self, reserve: impl FnOnce() -> Reserved) -> Option<Box<Estimate>> {
        let is_needed = self.quotas.count_tokens || self.is_journaled;
        is_needed.then(|| {
            let prices = self.prices.clone();
            Box::new(Estimate::new(reserve(), prices, self.answer_tokens))
        })
    }
}

impl Limiter {
    /// Creates a limiter for `all` requests at the same time, and `per_key` for each key.
    pub fn new(all: usize, per_key: usize) -> Self {
        let ledger = quota::SharedLedger::new();
        let caps = [all, per_key].map(|cap| Caps::concurrency(cap as u64));
        let (process, _) = set_limits(&ledger, &caps, &[]);
        Self {
            ledger,
            process,
            caps,
            clock: Clock::Runtime(Instant::now()),
            lease_client: None,
            queues: Arc::default(),
        }
    }

    /// Has the quotas leased from a store, which other gateways share.
    pub fn with_lease_client(mut self, lease_client: Arc<LeaseClient>) -> Self {
        self.clock = Clock::Boot;
        self.lease_client = Some(lease_client);
        self
    }

    /// Returns the client of the lease store, if there is one.
    pub fn lease_client(&self) -> Option<&Arc<LeaseClient>> {
        self.lease_client.as_ref()
    }

    /// Replaces the quotas. A quota that was there before keeps its usage.
    pub(crate) fn set_quotas(&self, rules: &[(Arc<str>, Terms)]) -> Vec<LimitId> {
        let quotas = set_limits(&self.ledger, &self.caps, rules).1;
        self.queues.note_change();
        quotas
    }

    /// Returns the number of requests that wait in queues.
    pub fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Takes a permit of a key within the limits of the process, if one is available.
    pub fn take(&self, key: &str) -> Option<Permit> {
        let claims = self.process_claims(key);
        // These limits have neither rates nor windows.
        let permit = self
            .ledger
            .admit(&claims, |_| Demand::default(), Now::default());
        permit
            .ok()
            .map(|permit| Permit::new(permit, 0, None, self, None))
    }

    /// Takes another permit for an admitted request, with the same reservation, if all limits have room
    /// for it now and no other request waits for that.
    pub fn take_another(
        &self,
        key: &str,
        model: &str,
        quotas: &Quotas,
        reservation: Reservation,
    ) -> Option<Permit> {
        let Reservation(mut estimate) = reservation;
        let applicant = AdmissionRequest {
            key,
            model,
            quotas,
            // The estimate has them.
            prices: &TargetPrices::default(),
            answer_tokens: 0,
            is_journaled: false,
        };
        match self.queue_ahead(applicant) {
            Some(_) => None,
            None => self.try_admit(applicant, &mut estimate).ok(),
        }
    }

    /// Admits a request now, or refuses it. Its permit takes the estimate of its usage.
    fn try_admit(
        &self,
        applicant: AdmissionRequest<'_>,
        estimate: &mut Option<Box<Estimate>>,
    ) -> Result<Permit, Refused> {
        let process = self.process_claims(applicant.key);
        if applicant.quotas.is_empty() && estimate.is_none() {
            let permit = self
                .ledger
                .admit(&process, |_| Demand::default(), Now::default())?;
            return Ok(Permit::new(permit, 0, None, self, None));
        }
        let mut claims: SmallVec<[Claim<'_>; 6]> = SmallVec::from_iter(process);
        claims.extend(applicant.quotas.claims(applicant.key, applicant.model));
        let demand = |typical| {
            let expected = estimate.as_deref_mut();
            expected.map_or_else(Demand::default, |expected| expected.demand(typical))
        };
        let now = self.now();
        let permit = self.ledger.admit(&claims, demand, now)?;
        let queues = applicant.quotas.have_queues.then(|| {
            Box::new(QueuesToWake {
                queues: Arc::clone(&self.queues),
                ids: applicant.queues().map(|queue| queue.id).collect(),
            })
        });
        Ok(Permit::new(
            permit,
            now.unix_ms,
            estimate.take(),
            self,
            queues,
        ))
    }

    /// Waits until the lease store is found without its data; forever without such a store.
    pub(crate) async fn lost_data(&self) {
        match &self.lease_client {
            Some(lease_client) => lease_client.lost_data().await,
            None => std::future::pending().await,
        }
    }

    /// Adds money that was spent before the limiter began, as [`quota::Ledger::add_spent`] does.
    pub(crate) fn add_spent(&self, claim: Claim<'_>, spent: Money) {
        let now = self.now();
        self.ledger.lock().add_spent(claim, spent, now);
    }

    /// Returns the state of each limit that has something in use.
    pub fn status(&self) -> Vec<Status> {
        let now = self.now();
        self.ledger.lock().status(now)
    }

    /// Returns the lease requests for the store, as [`quota::Ledger::poll`] does.
    fn poll_leases(&self, all: bool) -> Vec<PendingRequest> {
        let now = self.now();
        self.ledger.lock().poll(now, all)
    }

    fn is_due(&self) -> bool {
        self.ledger.lock().is_due()
    }

    /// Returns true once after leases whose requests have to end were lost, as
    /// [`quota::Ledger::has_lost_leases`] does.
    fn has_lost_leases(&self) -> bool {
        self.ledger.lock().has_lost_leases()
    }

    /// Applies the grants for lease requests, in their order; `None` where the store did not
    /// answer.
    fn apply_grants(&self, requests: &[PendingRequest], grants: &[Option<LeaseGrant>]) {
        let now = self.now();
        let mut ledger = self.ledger.lock();
        for (request, grant) in requests.iter().zip(grants) {
            ledger.on_grant(request, grant.as_ref(), now);
        }
    }

    /// Applies a notice of another gateway about a leased quota.
    fn on_notice(&self, key: &str) {
        self.ledger.lock().on_notice(key);
    }

    /// Returns the number of requests in progress.
    pub fn taken(&self) -> u64 {
        self.ledger.lock().in_use(Claim {
            limit: self.process[0],
            scope: "",
        })
    }

    fn process_claims<'a>(&self, key: &'a str) -> [Claim<'a>; 2] {
        let [all, per_key] = self.process;
        [(all, ""), (per_key, key)].map(|(limit, scope)| Claim { limit, scope })
    }

    fn now(&self) -> Now {
        self.clock.now()
    }
}

/// Sets the limits of the process and the quotas, and returns the identities of both.
fn set_limits(
    ledger: &quota::SharedLedger,
    [all, per_key]: &[Caps; 2],
    quotas: &[(Arc<str>, Terms)],
) -> ([LimitId; 2], Vec<LimitId>) {
    let mut process = ledger.lock().set_limits(
        [(ALL, all), (PER_KEY, per_key)]
            .map(|(name, caps)| (name.into(), caps.clone().into()))
            .into_iter()
            .chain(quotas.iter().cloned()),
    );
    let quotas = process.split_off(2);
    ([process[0], process[1]], quotas)
}

impl Clock {
    fn now(self) -> Now {
        let elapsed = match self {
            Self::Runtime(start) => start.elapsed(),
            Self::Boot => lease::boottime(),
        };
        Now {
            monotonic: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            unix_ms: clock::unix_seconds().saturating_mul(1000),
        }
    }
}

/// The names of the process limits, which are the names of their settings.
const ALL: &str = "limits.concurrency";
const PER_KEY: &str = "limits.concurrency_per_key";

#[cfg(test)]
mod schedules;
#[cfg(test)]
mod tests;
