//! The phases of a shutdown, which every task can observe, and the other events that abort the
//! requests of a connection.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use quota::LeaseLoss;
use smallvec::SmallVec;
use tokio::sync::watch;

/// The phase of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Serving, without a request to shut down.
    Serving,
    /// Still accepting, but not ready.
    LameDuck,
    /// Accepting only handshakes in progress.
    Closing,
    /// Not accepting any more; open responses continue.
    Draining,
    /// Aborting everything that is still open.
    Aborting,
}

/// The current phase of the process, shared by all tasks.
#[derive(Clone, Debug)]
pub struct Lifecycle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// For tasks that wait for a phase.
    phases: watch::Sender<Phase>,
    /// For the many requests that only look at it.
    phase: AtomicU8,
    wakers: Mutex<Wakers>,
}

/// The wakers of the connections whose requests are to be aborted.
#[derive(Debug, Default)]
struct Wakers {
    next: u64,
    all: BTreeMap<u64, Waker>,
}

/// Lets the requests of a connection wait for [`Phase::Aborting`], and for the loss of a lease with
/// which they have to end. The connection is registered once, instead of each request, because
/// registering takes a lock that all connections share. Only the task of the connection may wait: the
/// waker that was used last is woken.
#[derive(Debug, Default)]
pub struct AbortWatch(Mutex<Watched>);

#[derive(Debug, Default)]
struct Watched {
    registration: Option<Registration>,
    /// The leases of the request that is being answered.
    losses: SmallVec<[LeaseLoss; 2]>,
}

#[derive(Debug)]
struct Registration {
    lifecycle: Lifecycle,
    id: u64,
    waker: Waker,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self(Arc::new(Inner {
            phases: watch::Sender::new(Phase::Serving),
            phase: AtomicU8::new(Phase::Serving as u8),
            wakers: Mutex::default(),
        }))
    }
}

impl Lifecycle {
    /// Creates the lifecycle of a process that serves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true once a shutdown has begun.
    pub fn is_stopping(&self) -> bool {
        self.has_reached(Phase::LameDuck)
    }

    /// Waits until this phase, or a later one, is reached.
    pub fn reached(&self, wanted: Phase) -> impl Future<Output = ()> + Send + use<> {
        let mut phases = self.0.phases.subscribe();
        async move {
            // An error means that the sender is gone with the process, which is after all phases.
            let _ = phases.wait_for(|phase| *phase >= wanted).await;
        }
    }

    /// Enters a later phase, and wakes the tasks that wait for it.
    pub fn enter(&self, phase: Phase) {
        // Before the wakers are locked: a connection that registers afterwards sees it.
        self.0.phase.store(phase as u8, Ordering::SeqCst);
        self.0.phases.send_replace(phase);
        self.wake_all();
    }

    /// Wakes all connections, so that each checks whether its request must be aborted.
    pub fn wake_all(&self) {
        self.wakers().all.values().for_each(Waker::wake_by_ref);
    }

    fn has_reached(&self, phase: Phase) -> bool {
        self.0.phase.load(Ordering::SeqCst) >= phase as u8
    }

    fn register(&self, waker: Waker) -> Registration {
        let mut wakers = self.wakers();
        let id = wakers.next;
        wakers.next += 1;
        wakers.all.insert(id, waker.clone());
        Registration {
            lifecycle: self.clone(),
            id,
            waker,
        }
    }

    /// Ignores poisoning: no code panics while the map is inconsistent.
    fn wakers(&self) -> MutexGuard<'_, Wakers> {
        self.0.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason for which a request is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// The time for a shutdown is over.
    Shutdown,
    /// The lease of a quota was lost with which the request has to end.
    LeaseLost,
}

impl AbortWatch {
    /// Waits until the request that is being answered must be aborted, and returns the reason.
    pub async fn aborting(&self, lifecycle: &Lifecycle) -> Abort {
        poll_fn(|cx| self.poll(cx, lifecycle)).await
    }

    /// Polls [`AbortWatch::aborting`].
    pub fn poll(&self, cx: &mut Context<'_>, lifecycle: &Lifecycle) -> Poll<Abort> {
        let mut watched = self.lock();
        let registration = watched.registration.as_ref();
        let is_registered =
            registration.is_some_and(|registration| registration.waker.will_wake(cx.waker()));
        if !is_registered {
            watched.registration = Some(lifecycle.register(cx.waker().clone()));
        }
        if lifecycle.has_reached(Phase::Aborting) {
            return Poll::Ready(Abort::Shutdown);
        }
        match watched.losses.iter().any(LeaseLoss::has_happened) {
            true => Poll::Ready(Abort::LeaseLost),
            false => Poll::Pending,
        }
    }

    /// Sets the leases with which the request that is being answered has to end. A connection answers
    /// one request at a time.
    pub fn set_losses(&self, losses: &[LeaseLoss]) {
        self.lock().losses = losses.into();
    }

    /// Ignores poisoning: no code panics while the watch is inconsistent.
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.lifecycle.wakers().all.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lost_lease_aborts_the_request_that_has_it() {
        let (lifecycle, watch) = (Lifecycle::new(), AbortWatch::default());
        let loss = LeaseLoss::default();
        watch.set_losses(std::slice::from_ref(&loss));
        let mut waiting = Box::pin(watch.aborting(&lifecycle));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        loss.happen();
        assert_eq!(
            waiting.as_mut().poll(&mut cx),
            Poll::Ready(Abort::LeaseLost)
        );
        // The next request of the connection has leases of its own.
        watch.set_losses(&[]);
        let mut next = Box::pin(watch.aborting(&lifecycle));
        assert!(next.as_mut().poll(&mut cx).is_pending());
    }

    #[tokio::test]
    async fn abort_wakes_a_connection_that_moved_to_another_task() {
        let (lifecycle, watch) = (Lifecycle::new(), Arc::<AbortWatch>::default());
        let waiting =
            async |watch: Arc<AbortWatch>, lifecycle: Lifecycle| watch.aborting(&lifecycle).await;
        let mut first = Box::pin(waiting(Arc::clone(&watch), lifecycle.clone()));
        let mut elsewhere = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut elsewhere).is_pending());
        let second = tokio::spawn(first);
        tokio::task::yield_now().await;
        lifecycle.enter(Phase::LameDuck);
        tokio::task::yield_now().await;
        assert!(!second.is_finished() && lifecycle.is_stopping());
        lifecycle.enter(Phase::Aborting);
        assert_eq!(second.await.unwrap(), Abort::Shutdown);
        assert_eq!(lifecycle.wakers().all.len(), 1);
        drop(watch);
        assert_eq!(lifecycle.wakers().all.len(), 0);
    }
}
