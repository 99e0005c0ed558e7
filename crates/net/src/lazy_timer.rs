//! A timer for timeouts that hardly ever expire.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer for waits that follow one another, each with a deadline of its own.
///
/// Registering and removing a timer takes a lock of the runtime each time. So this one stays
/// registered when a wait is over: if it fires too early, it is set to the deadline of the wait that
/// is on then. It wakes the task that polled it last, so one task at a time may use it.
#[derive(Debug, Default)]
pub struct LazyTimer(Option<Pin<Box<Sleep>>>);

impl LazyTimer {
    /// Ready once `deadline` has passed. Several waits may be polled by the same task.
    pub fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        ready!(sleep.as_mut().poll(cx));
        if sleep.deadline() < deadline {
            sleep.as_mut().reset(deadline);
            ready!(sleep.as_mut().poll(cx));
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_its_own_deadline() {
        let started = Instant::now();
        let mut timer = LazyTimer::default();
        for (wait, ended) in [(10, 10), (30, 30), (20, 30), (31, 31)] {
            let deadline = started + Duration::from_secs(wait);
            poll_fn(|cx| timer.poll(cx, deadline)).await;
            assert_eq!(started.elapsed().as_secs(), ended);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_given_up_leaves_the_next_its_time() {
        let started = Instant::now();
        let mut timer = LazyTimer::default();
        tokio::select! {
            () = poll_fn(|cx| timer.poll(cx, started + Duration::from_secs(10))) => unreachable!(),
            () = sleep(Duration::from_secs(1)) => {}
        }
        poll_fn(|cx| timer.poll(cx, started + Duration::from_secs(40))).await;
        assert_eq!(started.elapsed().as_secs(), 40);
        tokio::select! {
            biased;
            () = poll_fn(|cx| timer.poll(cx, started + Duration::from_secs(90))) => unreachable!(),
            () = std::future::ready(()) => {}
        }
        poll_fn(|cx| timer.poll(cx, started + Duration::from_secs(50))).await;
        assert_eq!(started.elapsed().as_secs(), 50);
    }
}
