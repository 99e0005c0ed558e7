//! Collects the events of an engine for a reply that is not streamed.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use engine::EngineError;
use futures_util::Stream;
use tokio::time::timeout;

use crate::outcome::{Ending, Outcome};
use crate::record::Record;
use crate::refusal::Refusal;

/// The events of an engine, pulled one at a time.
pub(crate) type Steps<S> = Pin<Box<dyn Stream<Item = Result<S, EngineError>> + Send>>;

/// Passes each event to `take` until it returns how the answer ended. `idle_timeout` bounds the wait for each event.
///
/// # Errors
/// Returns a refusal if the engine fails, if it exceeds the idle timeout, or if its stream ends without a terminal
/// event.
pub(crate) async fn gather<S>(
    mut steps: Steps<S>,
    idle_timeout: Option<Duration>,
    mut record: Option<&mut Record>,
    mut take: impl FnMut(S) -> Option<Ending>,
) -> Result<(), Refusal> {
    loop {
        let step = next(&mut steps, idle_timeout).await.map_err(|error| {
            if let Some(record) = &mut record {
                record.end(Outcome::of_failure(&error));
            }
            Refusal::from(error)
        })?;
        if let Some(ending) = take(step) {
            if let Some(record) = &mut record {
                record.finish(ending);
            }
            return Ok(());
        }
    }
}

async fn next<S>(steps: &mut Steps<S>, idle_timeout: Option<Duration>) -> Result<S, EngineError> {
    let step = poll_fn(|cx| steps.as_mut().poll_next(cx));
    let step = match idle_timeout {
        None => step.await,
        Some(idle_timeout) => {
            let late = |_| EngineError::Timeout("idle timeout: no event".to_owned());
            timeout(idle_timeout, step).await.map_err(late)?
        }
    };
    step.unwrap_or_else(|| Err(EngineError::Internal("stream ended without a terminal event".to_owned())))
}
