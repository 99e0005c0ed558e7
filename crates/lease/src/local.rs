//! A lease store within the process.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quota::Ask;

use crate::clock::{Proof, boottime};
use crate::model::{Call, Model, SETTLED_LIFE};
use crate::store::{Exchange, Holders, LeaseStore};

/// A lease store within the process, for a gateway that shares its limits with no other.
#[derive(Debug)]
pub struct Local {
    lease: Duration,
    model: Mutex<Model>,
}

impl Local {
    /// Creates a store in which everything is free. `lease` is the duration of leases.
    #[must_use]
    pub fn new(lease: Duration) -> Self {
        Self {
            lease,
            model: Mutex::new(Model::settled()),
        }
    }
}

impl LeaseStore for Local {
    fn exchange<'a>(&'a self, asks: &'a [Ask]) -> Exchange<'a> {
        let now = boottime();
        let call = Call {
            replica: 1,
            proof: Proof {
                life: SETTLED_LIFE,
                at: now.as_millis() as u64,
                over: 0,
            },
            lease: self.lease.as_millis() as u64,
            asks: asks.to_vec(),
        };
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = model.exchange(&call, 0, now.as_micros() as u64);
        Box::pin(async { answer.replies.into_iter().map(Ok).collect() })
    }

    /// There are no other replicas.
    fn holders<'a>(&'a self, limits: &'a [String]) -> Holders<'a> {
        let nobody = vec![Vec::new(); limits.len()];
        Box::pin(async { Ok(nobody) })
    }
}

#[cfg(test)]
mod tests {
    use quota::Loan;

    use super::*;

    /// There is nothing that this store could have forgotten.
    #[tokio::test]
    async fn everything_is_free_at_the_start() {
        let store = Local::new(Duration::from_secs(10));
        let ask = |limit: &str, loan, more| Ask {
            limit: limit.into(),
            loan,
            seq: 1,
            acked: 0,
            incarnation: 0,
            claim: 0,
            used: 0,
            unacked: 0,
            more,
            need: more,
            least: more,
        };
        let bucket = Loan::Bucket {
            per_minute: 1,
            capacity: 500,
        };
        let asks = [ask("a", Loan::Permits { cap: 3 }, 3), ask("b", bucket, 400)];
        let replies = store.exchange(&asks).await;
        let held = replies
            .into_iter()
            .map(|reply| reply.map(|reply| (reply.held, reply.free)));
        assert_eq!(held.collect::<Vec<_>>(), [Ok((3, 0)), Ok((400, 100))]);
    }
}
