//! The log: one JSON object a line on standard error, written by a thread of its own that never holds up a request.

mod format;
mod panic;
mod queue;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{EnvFilter, Layer};

use self::queue::{Queue, Writer};
use crate::clock;

/// Starts the log. What is still to be written is written when the guard is dropped.
///
/// `SLUICEGATE_LOG` chooses what is written, as in `warn` or `access=info`; `info` without it. Lines past a bounded
/// queue are left out rather than waited for. Panics are lines too from here on.
pub(crate) fn start() -> io::Result<Writer> {
    let filter = EnvFilter::try_from_env("SLUICEGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let queue = Arc::new(Queue::default());
    let writer = Writer::start(Arc::clone(&queue), io::stderr())?;
    let _ = QUEUE.set(Arc::clone(&queue));
    let subscriber = tracing_subscriber::registry().with(filter).with(Lines(queue));
    // Not `init`: built with a feature that others may turn on, it takes the records of the `log` crate as well.
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)?;
    panic::hook(&PANICS);
    Ok(writer)
}

/// How many lines found no room in the queue or could not be written.
pub(crate) fn lost() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.lost())
}

/// How many panics there were in this process since its log was started, whoever caught them.
pub(crate) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Makes a line of each event. There are no spans.
#[derive(Default)]
struct Lines(Arc<Queue>);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.push(&format::of(event, clock::timestamp()));
    }
}

/// The panics of the process.
static PANICS: AtomicU64 = AtomicU64::new(0);
/// The queue of the log, which is the process's as its subscriber is.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();
