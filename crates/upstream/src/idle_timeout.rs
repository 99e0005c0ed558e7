//! The timeout for the next sign of life of a body: a chunk, or an event.

use std::task::{Context, Poll};
use std::time::Duration;

use net::LazyTimer;
use tokio::time::Instant;

/// A timeout for each wait for a sign of life. Only time spent waiting counts: a slow reader is not
/// the upstream's fault.
pub(crate) struct IdleTimeout {
    limit: Duration,
    deadline: Option<Instant>,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            deadline: None,
        }
    }

    /// Restarts the timeout: a sign of life has arrived.
    pub(crate) fn reset(&mut self) {
        self.deadline = None;
    }

    /// Ready once the timeout has expired.
    pub(crate) fn poll(&mut self, timer: &mut LazyTimer, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self
            .deadline
            .get_or_insert_with(|| Instant::now() + self.limit);
        timer.poll(cx, *deadline)
    }
}
