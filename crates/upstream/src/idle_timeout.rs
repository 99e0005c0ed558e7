//! The timeout for the next sign of life of a body: a chunk, or an event.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A timeout for each wait for a sign of life. Only time spent waiting counts: a slow reader is not
/// the upstream's fault.
///
/// The timer is not reset for every sign: it checks the deadline when it fires, because signs are
/// frequent and timeouts are rare.
pub(crate) struct IdleTimeout {
    limit: Duration,
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            deadline: None,
            timer: None,
        }
    }

    /// Restarts the timeout: a sign of life has arrived.
    pub(crate) fn reset(&mut self) {
        self.deadline = None;
    }

    /// Ready once the timeout has expired.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = *self
            .deadline
            .get_or_insert_with(|| Instant::now() + self.limit);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
