//! A plain reply: everything that the engine does, gathered to the end.

use std::future::poll_fn;

use engine::EngineError;
use wire::ApiError;

use super::events::{Ending, Steps};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::refusal::Refusal;

/// Hands each step to `take` until one was the last.
///
/// # Errors
/// When the engine fails, or ends without an end.
pub(crate) async fn gather<S>(
    mut steps: Steps<S>,
    mut record: Option<&mut Record>,
    mut take: impl FnMut(S) -> Option<Ending>,
) -> Result<(), Refusal> {
    while let Some(step) = poll_fn(|cx| steps.as_mut().poll_next(cx)).await {
        let step = step.map_err(|error| {
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
    let cause = Some("the engine ended without an end".to_owned());
    Err(Refusal { cause, ..ApiError::server_error().into() })
}

/// What a client is told of an engine's failure before an answer has begun.
pub(crate) fn refuse(error: &EngineError) -> Refusal {
    Refusal { cause: Some(error.to_string()), ..translate::api_error(error).into() }
}
