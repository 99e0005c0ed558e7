//! The log: one JSON object a line on standard error, written by a thread of its own that never holds up a request.

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// Starts the log. What is still to be written is written when the guard is dropped.
///
/// `SLUICEGATE_LOG` chooses what is written, as in `warn` or `access=info`; `info` without it. Lines past a bounded
/// queue are left out rather than waited for.
pub(crate) fn start() -> WorkerGuard {
    let (writer, guard) = NonBlockingBuilder::default().lossy(true).finish(std::io::stderr());
    let filter = EnvFilter::try_from_env("SLUICEGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let format = tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(false);
    let format = format.with_writer(writer);
    use tracing_subscriber::prelude::*;
    tracing_subscriber::registry().with(filter).with(format).init();
    guard
}
