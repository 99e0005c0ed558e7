//! The admission of requests that may wait: for the store of a leased quota, or in the queue of a
//! quota.

use std::time::Duration;

use quota::Refused;
use tokio::time::{Instant, timeout, timeout_at};

use super::queues::Place;
use super::quotas::QuotaQueue;
use super::reserved::Estimate;
use super::{AdmissionRequest, Limiter, Permit, Reserved, lease_client};

/// The decision on a request.
#[derive(Debug)]
pub struct Decision {
    /// The permit, or the first limit that has no room.
    pub result: Result<Permit, Refused>,
    /// The time that the request has waited in queues, if it has.
    pub waited: Option<Duration>,
}

impl<'a> AdmissionRequest<'a> {
    /// Returns the queues that the request may have to wait in.
    pub(super) fn queues(self) -> impl Iterator<Item = QuotaQueue<'a>> {
        self.quotas.queues(self.key, self.model)
    }

    /// Returns the queue of the quota that has refused this request, if it helps to wait there.
    fn queue_of(self, refused: &Refused) -> Option<QuotaQueue<'a>> {
        self.queues().find(|queue| queue.is_for(refused))
    }
}

impl Limiter {
    /// Admits a request, and reserves its possible usage. `reserve` is called only if a quota or
    /// the journal needs it. A request that finds too little of a leased quota waits briefly for
    /// the store. A request that finds no room in a quota with a queue waits in the queue.
    pub async fn admit(
        &self,
        applicant: AdmissionRequest<'_>,
        reserve: impl FnOnce() -> Reserved,
    ) -> Decision {
        let mut estimate = applicant.estimate(reserve);
        let queue = match self.queue_ahead(applicant) {
            Some(queue) => queue,
            None => {
                let result = self.ask(applicant, &mut estimate).await;
                let refused = result.as_ref().err();
                match refused.and_then(|refused| applicant.queue_of(refused)) {
                    Some(queue) => queue,
                    None => {
                        return Decision {
                            result,
                            waited: None,
                        };
                    }
                }
            }
        };
        let started = Instant::now();
        // Boxed, because few requests wait.
        let result = Box::pin(self.wait(applicant, &mut estimate, queue)).await;
        Decision {
            result,
            waited: Some(started.elapsed()),
        }
    }

    /// Returns a queue in which requests wait that come before this one.
    pub(super) fn queue_ahead<'a>(
        &self,
        applicant: AdmissionRequest<'a>,
    ) -> Option<QuotaQueue<'a>> {
        match self.queues.waiting() {
            0 => None,
            _ => applicant.queues().find(|queue| self.queues.has(&queue.id)),
        }
    }

    /// Lets a request wait in a queue, and in others that it comes to need, for as long as the
    /// first one permits.
    async fn wait(
        &self,
        applicant: AdmissionRequest<'_>,
        estimate: &mut Option<Box<Estimate>>,
        queue: QuotaQueue<'_>,
    ) -> Result<Permit, Refused> {
        let deadline = Instant::now() + queue.settings.wait;
        let waited = timeout_at(deadline, self.take_turns(applicant, estimate, queue)).await;
        // The last attempt finds the reason.
        waited.unwrap_or_else(|_| self.try_admit(applicant, estimate))
    }

    async fn take_turns(
        &self,
        applicant: AdmissionRequest<'_>,
        estimate: &mut Option<Box<Estimate>>,
        mut queue: QuotaQueue<'_>,
    ) -> Result<Permit, Refused> {
        loop {
            let QuotaQueue { id, settings, .. } = queue;
            let Some(mut place) = self.queues.join(id, applicant.key, settings.depth) else {
                return self.ask(applicant, estimate).await;
            };
            if !place.turn().await {
                return self.ask(applicant, estimate).await;
            }
            let refused = match self.ask_in_turn(applicant, estimate, &place).await {
                Err(refused) => refused,
                admitted => return admitted,
            };
            // No request has the turn of one queue while it waits in another: two could block each
            // other.
            drop(place);
            let Some(next) = applicant.queue_of(&refused) else {
                return Err(refused);
            };
            queue = next;
        }
    }

    /// Tries again after each change, until the request is admitted or refused by something else
    /// than this quota.
    async fn ask_in_turn(
        &self,
        applicant: AdmissionRequest<'_>,
        estimate: &mut Option<Box<Estimate>>,
        place: &Place<'_>,
    ) -> Result<Permit, Refused> {
        loop {
            let change = place.next_change();
            let refused = match self.ask(applicant, estimate).await {
                Err(refused) => refused,
                admitted => return admitted,
            };
            let queue = applicant.queue_of(&refused);
            if queue.is_none_or(|queue| queue.id != *place.id()) {
                return Err(refused);
            }
            // A request that the store of a leased quota has refused has waited for the store
            // already.
            if !refused.may_wait {
                let soon = refused.retry_after.map(Duration::from_micros);
                let _ = timeout(soon.unwrap_or(RECHECK).min(RECHECK), change).await;
            }
        }
    }

    /// Admits a request, or waits briefly for the store of a leased quota that has too little.
    async fn ask(
        &self,
        applicant: AdmissionRequest<'_>,
        estimate: &mut Option<Box<Estimate>>,
    ) -> Result<Permit, Refused> {
        let Some(lease_client) = &self.lease_client else {
            return self.try_admit(applicant, estimate);
        };
        let deadline = Instant::now() + lease_client::GRANT_TIMEOUT;
        let mut has_answered = false;
        loop {
            let mut ended = lease_client.subscribe();
            match self.try_admit(applicant, estimate) {
                Err(mut refused) if refused.may_wait => {
                    lease_client.wake();
                    if !lease_client::exchange_ended(&mut ended, deadline).await {
                        // Without any response it is not known whether there is room.
                        refused.is_degraded |= !has_answered;
                        return Err(refused);
                    }
                    has_answered = true;
                }
                other => return other,
            }
        }
    }
}

/// The time after which the request that has the turn tries again, if nothing was released.
/// Requests that were admitted before their quota got its queue wake nobody.
const RECHECK: Duration = Duration::from_secs(1);
