//! The permit of a request, which is settled by its charge when it ends.

use std::sync::Arc;

use quota::{Demand, LeaseLoss, Used};

use super::charge::{Attempt, Charge, FinalUsage};
use super::lease_client::LeaseClient;
use super::queues::QueuesToWake;
use super::quota_state::QuotaState;
use super::reserved::Estimate;
use super::{Clock, Limiter};

/// The permit of a request to be answered. It is released when it is dropped, which the response
/// body does last; [`Permit::end`] also counts the usage.
#[derive(Debug)]
pub struct Permit {
    permit: quota::Permit,
    /// The time of the admission, in milliseconds since the Unix epoch.
    admitted_ms: i64,
    /// `None` if the usage of the request does not matter to any limit or journal.
    estimate: Option<Box<Estimate>>,
    clock: Clock,
    /// Returns unused amounts to the store, if the quotas are leased.
    lease_client: Option<Arc<LeaseClient>>,
    /// The queues of requests that wait until this one releases something.
    queues: Option<Box<QueuesToWake>>,
}

/// The reservation of an admitted request, with which it can take another permit.
#[derive(Clone, Debug)]
pub struct Reservation(pub(super) Option<Box<Estimate>>);

impl Permit {
    pub(super) fn new(
        permit: quota::Permit,
        admitted_ms: i64,
        estimate: Option<Box<Estimate>>,
        limiter: &Limiter,
        queues: Option<Box<QueuesToWake>>,
    ) -> Self {
        let lease_client = limiter.lease_client.clone();
        if permit.is_due()
            && let Some(lease_client) = &lease_client
        {
            lease_client.wake();
        }
        Self {
            permit,
            admitted_ms,
            estimate,
            clock: limiter.clock,
            lease_client,
            queues,
        }
    }

    /// Returns the state of the quotas at the admission.
    pub fn quotas(&self) -> QuotaState {
        QuotaState {
            remaining: self.permit.remaining(),
            is_degraded: self.permit.is_degraded(),
        }
    }

    /// Returns the losses of the leases with which the request has to end.
    pub fn losses(&self) -> &[LeaseLoss] {
        self.permit.losses()
    }

    /// Returns the most that the request may use.
    pub fn most(&self) -> Demand {
        let estimate = self.estimate.as_ref();
        estimate.map(|estimate| estimate.most()).unwrap_or_default()
    }

    /// Returns the reservation of the request.
    pub fn reservation(&self) -> Reservation {
        Reservation(self.estimate.clone())
    }

    /// Returns the tokens that are reserved in rates.
    #[cfg(test)]
    pub(super) fn reserved_tokens(&self) -> u64 {
        let estimate = self.estimate.as_ref();
        estimate.map_or(0, |estimate| estimate.reserved_tokens())
    }

    /// Returns true if the usage of the request matters to any limit or journal.
    pub fn is_estimated(&self) -> bool {
        self.estimate.is_some()
    }

    /// Returns true if the request is one for pictures.
    pub fn makes_pictures(&self) -> bool {
        let estimate = self.estimate.as_ref();
        estimate.is_some_and(|estimate| estimate.reserved().pictures.count > 0)
    }

    /// Returns the time of the admission, in milliseconds since the Unix epoch.
    pub(crate) fn admitted_ms(&self) -> i64 {
        self.admitted_ms
    }

    /// Releases the permit, and counts the usage. Without an estimate there is no charge.
    pub fn end(self, attempts: &[Attempt]) -> Charge {
        let Some(estimate) = &self.estimate else {
            // Otherwise, dropping the permit does the same and reads no clock.
            if self.lease_client.is_some() || self.queues.is_some() {
                self.settle(Used::default());
            }
            return Charge::default();
        };
        let charge = estimate.charge(attempts);
        let is_unfinished = |attempt: &Attempt| matches!(attempt.known, FinalUsage::Unfinished(_));
        let used = Used {
            tokens: match attempts.iter().any(is_unfinished) {
                true => estimate.probable_tokens(attempts),
                false => charge.tokens(),
            },
            // Only reported lengths of complete answers update the typical length.
            answer_tokens: match attempts.last() {
                Some(last) => estimate.length(last.known.reported_answer()),
                None => 0,
            },
            money: charge.cost.unwrap_or_default(),
        };
        self.settle(used);
        charge
    }

    /// Releases the place of a request that goes on without one, and keeps its reservation.
    pub fn release_place(&mut self) {
        if self.permit.release_place()
            && let Some(lease_client) = &self.lease_client
        {
            lease_client.wake();
        }
        if let Some(queues) = &self.queues {
            queues.wake();
        }
    }

    fn settle(self, used: Used) {
        let now = self.clock.now();
        if self.permit.end(used, now)
            && let Some(lease_client) = self.lease_client
        {
            lease_client.wake();
        }
        if let Some(queues) = self.queues {
            queues.wake();
        }
    }
}
