//! A plain reply: everything that the engine does, gathered to the end.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use engine::EngineError;
use futures_util::Stream;
use tokio::time::timeout;

use crate::outcome::{Ending, Outcome};
use crate::record::Record;
use crate::refusal::Refusal;

/// What an engine does, pulled one step at a time.
pub(crate) type Steps<S> = Pin<Box<dyn Stream<Item = Result<S, EngineError>> + Send>>;

/// Hands each step to `take` until one was the last. Each may take as long as `patience`, if that is bounded.
///
/// # Errors
/// When the engine fails, or ends without an end.
pub(crate) async fn gather<S>(
    mut steps: Steps<S>,
    patience: Option<Duration>,
    mut record: Option<&mut Record>,
    mut take: impl FnMut(S) -> Option<Ending>,
) -> Result<(), Refusal> {
    loop {
        let step = next(&mut steps, patience).await.map_err(|error| {
            if let Some(record) = &mut record {
                record.end(Outcome::of_failure(&error));
            }
            refuse(&error)
        })?;
        if let Some(ending) = take(step) {
            if let Some(record) = &mut record {
                record.finish(ending);
            }
            return Ok(());
        }
    }
}

async fn next<S>(steps: &mut Steps<S>, patience: Option<Duration>) -> Result<S, EngineError> {
    let step = poll_fn(|cx| steps.as_mut().poll_next(cx));
    let step = match patience {
        None => step.await,
        Some(patience) => {
            let late = |_| EngineError::Timeout("no event for too long".to_owned());
            timeout(patience, step).await.map_err(late)?
        }
    };
    step.unwrap_or_else(|| Err(EngineError::Internal("the engine ended without an end".to_owned())))
}

/// What a client is told of an engine's failure before an answer has begun.
pub(crate) fn refuse(error: &EngineError) -> Refusal {
    Refusal { cause: cause(error), ..translate::api_error(error).into() }
}

/// What the log says of an engine's failure. What is not served is told in words that may be the client's own.
pub(crate) fn cause(error: &EngineError) -> Option<String> {
    (!matches!(error, EngineError::Unsupported { .. })).then(|| error.to_string())
}
