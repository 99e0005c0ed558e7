//! A lease store within the process.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quota::LeaseRequest;

use crate::clock::{ElapsedProof, boottime};
use crate::reference::{ExchangeRequest, ReferenceStore, SINGLE_PROCESS_EPOCH};
use crate::store::{ExchangeFuture, LeaseStore, SharesFuture};

/// A lease store within the process, for a gateway that shares its limits with no other.
#[derive(Debug)]
pub struct InProcessStore {
    lease: Duration,
    model: Mutex<ReferenceStore>,
}

impl InProcessStore {
    /// Creates a store that has granted nothing: all of each limit is available. `lease` is the
    /// duration of leases.
    #[must_use]
    pub fn new(lease: Duration) -> Self {
        Self {
            lease,
            model: Mutex::new(ReferenceStore::settled()),
        }
    }
}

impl LeaseStore for InProcessStore {
    fn exchange<'a>(&'a self, requests: &'a [LeaseRequest]) -> ExchangeFuture<'a> {
        let now = boottime();
        let call = ExchangeRequest {
            replica: 1,
            proof: ElapsedProof {
                epoch: SINGLE_PROCESS_EPOCH,
                elapsed_ms: now.as_millis() as u64,
                expired_event: 0,
            },
            lease: self.lease.as_millis() as u64,
            requests: requests.to_vec(),
        };
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = model.exchange(&call, 0, now.as_micros() as u64);
        Box::pin(async { answer.replies.into_iter().map(Ok).collect() })
    }

    /// Returns no shares for any limit, because there are no other replicas.
    fn holders<'a>(&'a self, limits: &'a [String]) -> SharesFuture<'a> {
        let nobody = vec![Vec::new(); limits.len()];
        Box::pin(async { Ok(nobody) })
    }
}

#[cfg(test)]
mod tests {
    use quota::LeasedLimitSpec;

    use super::*;

    /// A store within the process cannot have forgotten leases, so it starts without a quarantine.
    #[tokio::test]
    async fn everything_is_free_at_the_start() {
        let store = InProcessStore::new(Duration::from_secs(10));
        let request = |limit: &str, spec, wanted| LeaseRequest {
            limit: limit.into(),
            spec,
            seq: 1,
            acked: 0,
            incarnation: 0,
            retained: 0,
            used: 0,
            unacked: 0,
            wanted,
            waiting: wanted,
            smallest_waiting: wanted,
        };
        let bucket = LeasedLimitSpec::Bucket {
            per_minute: 1,
            capacity: 500,
        };
        let requests = [
            request("a", LeasedLimitSpec::Permits { cap: 3 }, 3),
            request("b", bucket, 400),
        ];
        let replies = store.exchange(&requests).await;
        let held = replies
            .into_iter()
            .map(|reply| reply.map(|reply| (reply.held, reply.available)));
        assert_eq!(held.collect::<Vec<_>>(), [Ok((3, 0)), Ok((400, 100))]);
    }
}
