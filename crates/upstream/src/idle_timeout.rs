//! How long the next piece of a body may take.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A limit on each wait for a piece. Only time in which a piece was waited for counts: a slow reader is not the
/// upstream's fault.
///
/// The timer is set once and looks at the deadline when it fires, because pieces are many and timeouts are few.
pub(crate) struct IdleTimeout {
    limit: Duration,
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, deadline: None, timer: None }
    }

    /// A piece is there.
    pub(crate) fn renew(&mut self) {
        self.deadline = None;
    }

    /// Waits. Ready when it is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.limit);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
