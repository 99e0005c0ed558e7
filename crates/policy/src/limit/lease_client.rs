//! Exchanges with the lease store, from which several gateways lease the quotas that they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lease::{LeaseStore, ShareInfo, Unreachable};
use quota::{FailMode, LeaseRequest, LeaseSettings, LostLease, PendingRequest};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, interval, sleep, timeout_at};

use super::Limiter;
use crate::lifecycle::Lifecycle;

/// The client of a lease store, and the state of the exchanges with the store.
#[derive(Debug)]
pub struct LeaseClient {
    store: Arc<dyn LeaseStore>,
    lease: Duration,
    lost_lease: LostLease,
    /// Set when a share may have to be polled.
    wake: Notify,
    /// The number of exchanges that have ended.
    ended: watch::Sender<u64>,
    answered: AtomicU64,
    failed: AtomicU64,
    /// True if the last exchange has failed.
    is_unreachable: AtomicBool,
}

/// The numbers of exchanges so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanges {
    /// Exchanges that the store has answered.
    pub answered: u64,
    /// Exchanges that have failed.
    pub failed: u64,
}

impl LeaseClient {
    /// Creates the client of a store whose leases have the duration `lease`.
    pub fn new(store: Arc<dyn LeaseStore>, lease: Duration, lost_lease: LostLease) -> Self {
        Self {
            store,
            lease,
            lost_lease,
            wake: Notify::new(),
            ended: watch::Sender::new(0),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            is_unreachable: AtomicBool::new(false),
        }
    }

    /// Returns the lease settings of a quota with this reaction to an unreachable store.
    pub(super) fn lending(&self, mode: FailMode) -> LeaseSettings {
        LeaseSettings {
            mode,
            lease: self.lease,
            lost_lease: self.lost_lease,
        }
    }

    /// Returns the number of exchanges with the store so far.
    pub fn exchanges(&self) -> Exchanges {
        Exchanges {
            answered: self.answered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Returns the shares of all replicas in each of these limits, which are named as in the store.
    pub async fn holders(&self, limits: &[String]) -> Result<Vec<Vec<ShareInfo>>, Unreachable> {
        self.store.holders(limits).await
    }

    /// Waits until the store is found without its data.
    pub(super) async fn lost_data(&self) {
        self.store.lost_data().await;
    }

    /// Notes that a share may have to request or return something.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Returns a receiver of the ends of the exchanges from now on.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Renews the leases, sends lease requests for waiting requests, returns idle amounts that
    /// other gateways wait for, and aborts requests that have to end with their lease. Runs
    /// forever. `lifecycle` wakes the connections of aborted requests.
    pub async fn run(self: Arc<Self>, limiter: Arc<Limiter>, lifecycle: Lifecycle) {
        tokio::join!(
            Arc::clone(&self).renew(Arc::clone(&limiter), lifecycle),
            self.listen(&limiter)
        );
    }

    async fn listen(&self, limiter: &Limiter) {
        loop {
            let key = self.store.notice().await;
            limiter.on_notice(&key);
            self.wake();
        }
    }

    async fn renew(self: Arc<Self>, limiter: Arc<Limiter>, lifecycle: Lifecycle) {
        let mut renewals = interval(self.lease / RENEWAL_CHECKS);
        // The first exchange shows the store when this gateway has begun, so that the store need
        // not wait longer.
        let mut asked: Option<Instant> = None;
        loop {
            let all = tokio::select! {
                () = self.wake.notified() => false,
                () = sleep(self.lease / RETRIES), if limiter.is_due() => false,
                _ = renewals.tick() => true,
            };
            let requests = limiter.poll_leases(all);
            if limiter.has_lost_leases() {
                lifecycle.wake_all();
            }
            // A store that has lost its data has to notice it, even if nothing is leased.
            let is_due = all && asked.is_none_or(|asked| asked.elapsed() >= self.lease / 4);
            if requests.is_empty() && !is_due {
                continue;
            }
            asked = Some(Instant::now());
            // Exchanges do not wait for each other: each share has at most one.
            let (lease_client, limiter) = (Arc::clone(&self), Arc::clone(&limiter));
            tokio::spawn(async move { lease_client.exchange(&limiter, requests).await });
        }
    }

    async fn exchange(&self, limiter: &Limiter, pending: Vec<PendingRequest>) {
        let requests = pending.iter().map(|pending| pending.request.clone());
        let requests: Vec<LeaseRequest> = requests.collect();
        let results = self.store.exchange(&requests).await;
        let replies: Vec<_> = results.into_iter().map(Result::ok).collect();
        let has_failed = replies.iter().any(Option::is_none);
        self.note(has_failed);
        limiter.apply_grants(&pending, &replies);
        self.ended.send_modify(|count| *count += 1);
        // Returns at once the amounts that are idle after these grants.
        self.wake();
    }
}

impl LeaseClient {
    /// Counts an exchange, and logs each time that the store goes away or comes back.
    fn note(&self, has_failed: bool) {
        let count = if has_failed {
            &self.failed
        } else {
            &self.answered
        };
        count.fetch_add(1, Ordering::Relaxed);
        match (
            self.is_unreachable.swap(has_failed, Ordering::Relaxed),
            has_failed,
        ) {
            (false, true) => tracing::error!(
                "the lease store does not answer: quotas go on as on_lost_store is configured"
            ),
            (true, false) => tracing::info!("the lease store is back"),
            _ => {}
        }
    }
}

/// Waits until an exchange has ended, or until the deadline. Returns false at the deadline.
pub(super) async fn exchange_ended(ended: &mut watch::Receiver<u64>, deadline: Instant) -> bool {
    timeout_at(deadline, ended.changed()).await.is_ok()
}

/// The number of times in a lease at which all shares are checked: they renew their lease after a
/// third of it, and requests that must not outlive their lease are ended earlier by the time
/// between two checks.
const RENEWAL_CHECKS: u32 = quota::CHECKS_OF_LEASE;
/// The part of a lease after which the store is asked again for waiting requests. A share asks no
/// sooner.
const RETRIES: u32 = 500;
/// The time for which a request waits for the store before it is refused.
pub(super) const GRANT_TIMEOUT: Duration = Duration::from_millis(100);
