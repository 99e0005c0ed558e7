//! The log: one JSON object per line on standard error. A dedicated thread writes it, so that
//! requests never block on it. Lines are `tracing` events, except for request lines
//! (`AccessLine`).

mod access;
mod format;
mod json;
mod panic;
mod queue;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use policy::clock;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{EnvFilter, Layer};

pub use self::access::AccessLine;
use self::queue::{Queue, Writer};

/// Starts the log. Dropping the returned guard flushes it.
///
/// `SLUICEGATE_LOG` is the filter, such as `warn` or `access=info`; default `info`. Lines that
/// exceed the bounded queue are dropped rather than waited for. From here on panics are log lines
/// too.
pub fn start() -> io::Result<Writer> {
    let filter =
        EnvFilter::try_from_env("SLUICEGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let queue = Arc::new(Queue::default());
    let writer = Writer::start(Arc::clone(&queue), io::stderr())?;
    let _ = QUEUE.set(Arc::clone(&queue));
    let subscriber = tracing_subscriber::registry()
        .with(filter)
        .with(Lines(queue));
    // Not `init`: with a feature that another crate may enable, it captures the records of the
    // `log` crate as well.
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)?;
    panic::hook(&PANICS);
    Ok(writer)
}

/// The number of lines that were dropped from a full queue or could not be written.
pub(crate) fn lost() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.lost())
}

/// The number of panics since the log was started, including panics that other code caught.
pub(crate) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Formats each event as a line. Spans are not used.
#[derive(Default)]
struct Lines(Arc<Queue>);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.push(&format::of(event, clock::timestamp()));
    }
}

static PANICS: AtomicU64 = AtomicU64::new(0);
/// The queue of the log, global like its subscriber.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();
