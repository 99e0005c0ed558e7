//! The log: one JSON object per line on standard error. A dedicated thread writes it, so that
//! requests never block on it. Lines are `tracing` events, except for request lines
//! (`AccessLine`).

mod access;
mod format;
mod json;
mod panic;
mod queue;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::{env, io};

use policy::clock;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{EnvFilter, Layer};

pub use self::access::AccessLine;
use self::queue::{Queue, Writer};

/// Starts the log. Dropping the returned guard flushes it.
///
/// Lines that exceed the bounded queue are dropped rather than waited for. From here on panics are log
/// lines too.
pub fn start(filter: EnvFilter) -> io::Result<Writer> {
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

/// Returns the filter of the variable `SLUICEGATE_LOG`, such as `warn` or `access=info`; default `info`.
///
/// # Errors
/// Returns the problem of the variable.
pub fn filter() -> Result<EnvFilter, String> {
    let found = env::var_os(VARIABLE).unwrap_or_default();
    parse(&found.to_string_lossy())
}

fn parse(text: &str) -> Result<EnvFilter, String> {
    let text = if text.trim().is_empty() { "info" } else { text };
    let refuse = || {
        let found = wire::truncate_for_error(text);
        format!("{VARIABLE}: is '{found}', but must be {ACCEPTED}")
    };
    match text.split(',').all(names_level) {
        true => EnvFilter::try_new(text).map_err(|_| refuse()),
        false => Err(refuse()),
    }
}

/// Returns true for a level, or a target of events and its level. A level with a typing error would be a
/// target, so that the lines of all other targets would be lost.
fn names_level(part: &str) -> bool {
    let mut words = part.rsplit('=').map(str::trim);
    let level = words.next().filter(|word| !word.is_empty());
    let is_of_target = |c: char| c.is_ascii_alphanumeric() || "_:-".contains(c);
    let is_target = |word: &str| !word.is_empty() && word.chars().all(is_of_target);
    level.is_some_and(|level| level.parse::<LevelFilter>().is_ok()) && words.all(is_target)
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
/// The variable of the environment that has the filter.
const VARIABLE: &str = "SLUICEGATE_LOG";
const ACCEPTED: &str = "off, error, warn, info, debug or trace, or a list of these by target, such as 'warn,access=info'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_filter_has_a_level() {
        for (text, filter) in [
            ("", "info"),
            ("warn", "warn"),
            ("access=info", "access=info"),
            ("warn,access=INFO", "access=info,warn"),
            ("off", "off"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), filter, "{text}");
        }
        for text in [
            "inof",
            "access",
            "access=inof",
            "info,",
            "info;access=info",
            "=info=",
        ] {
            assert_eq!(
                parse(text).unwrap_err(),
                format!(
                    "SLUICEGATE_LOG: is '{text}', but must be off, error, warn, info, debug or trace, or a list of these by target, such as 'warn,access=info'"
                )
            );
        }
    }
}
