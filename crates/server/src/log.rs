//! The log: one JSON object a line on standard error, written by a thread of its own that never holds up a request.

mod line;
mod queue;

use std::sync::Arc;

use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

use self::queue::{Queue, Writer};
use crate::clock;

/// Starts the log. What is still to be written is written when the guard is dropped.
///
/// `SLUICEGATE_LOG` chooses what is written, as in `warn` or `access=info`; `info` without it. Lines past a bounded
/// queue are left out rather than waited for.
pub(crate) fn start() -> std::io::Result<Writer> {
    let filter = EnvFilter::try_from_env("SLUICEGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let queue = Arc::new(Queue::default());
    let writer = Writer::start(Arc::clone(&queue), std::io::stderr())?;
    tracing_subscriber::registry().with(filter).with(Lines(queue)).init();
    Ok(writer)
}

/// Makes a line of each event. There are no spans.
struct Lines(Arc<Queue>);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.push(&line::of(event, clock::timestamp()));
    }
}
