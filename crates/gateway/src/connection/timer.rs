//! A timer that all deadlines of a connection's task share.
//!
//! Every request starts several timeouts, and hardly any of them fires. So a connection has a
//! single registered timer, a [`LazyTimer`].

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use net::LazyTimer;
use pin_project_lite::pin_project;
use tokio::time::Instant;

/// The timer of a connection. It wakes the task that has polled it last, so only the task of the
/// connection may use it.
#[derive(Clone, Default)]
pub struct ConnectionTimer(Arc<Mutex<LazyTimer>>);

pin_project! {
    /// The future of [`ConnectionTimer::timeout_at`]. No `async fn`, which would reserve memory for
    /// `work` twice.
    pub(crate) struct Timeout<'t, F> {
        #[pin]
        work: F,
        timer: &'t ConnectionTimer,
        deadline: Instant,
    }
}

impl ConnectionTimer {
    /// Waits for the deadline. Several deadlines can be waited for at the same time, if all of them
    /// are polled whenever the task is woken.
    pub fn poll(&self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        // A panic cannot leave the timer in an inconsistent state.
        let mut timer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        timer.poll(cx, deadline)
    }

    /// Awaits `work` until the deadline; `None` if it takes longer.
    pub(crate) fn timeout_at<F: Future>(&self, deadline: Instant, work: F) -> Timeout<'_, F> {
        Timeout {
            work,
            timer: self,
            deadline,
        }
    }
}

impl fmt::Debug for ConnectionTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionTimer")
    }
}

impl<F: Future> Future for Timeout<'_, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.work.poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => this.timer.poll(cx, *this.deadline).map(|()| None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn each_timeout_has_its_own_deadline() {
        let (timer, started) = (ConnectionTimer::default(), Instant::now());
        let timeout = async |after, work| {
            let ended = timer.timeout_at(started + seconds(after), sleep(seconds(work)));
            (ended.await.is_some(), started.elapsed().as_secs())
        };
        assert_eq!(timeout(10, 1).await, (true, 1), "the timer is left at 10");
        assert_eq!(timeout(30, 20).await, (true, 21), "it fires too early");
        assert_eq!(timeout(40, 60).await, (false, 40), "it is set again");
        assert_eq!(timeout(100, 1).await, (true, 41));
        assert_eq!(timeout(50, 60).await, (false, 50), "it is set to earlier");
        assert_eq!(timeout(20, 60).await, (false, 50), "it has passed");
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_can_be_awaited_at_the_same_time() {
        let (timer, started) = (ConnectionTimer::default(), Instant::now());
        let at = async |after| {
            poll_fn(|cx| timer.poll(cx, started + seconds(after))).await;
            started.elapsed().as_secs()
        };
        assert_eq!(tokio::join!(at(30), at(10), at(20)), (30, 10, 20));
    }
}
