//! The neutral events of an engine or of a translated upstream.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use engine::EngineError;
use futures_util::Stream;
use relay::End;
use telemetry::outcome::Outcome;

use crate::exchange::record::Record;
use crate::exchange::refusal::Refusal;

/// The events of one answer, pulled one at a time.
pub(crate) type EngineEvents<S> = Pin<Box<dyn Stream<Item = Result<S, EngineError>> + Send>>;

/// Polls for the next event of an answer that has not ended. A stream without a terminal event is a
/// failure.
pub(crate) fn poll_event<S>(
    events: &mut EngineEvents<S>,
    cx: &mut Context<'_>,
) -> Poll<Result<S, EngineError>> {
    let unterminated = || {
        Err(EngineError::Internal(
            "stream ended without a terminal event".to_owned(),
        ))
    };
    Poll::Ready(ready!(events.as_mut().poll_next(cx)).unwrap_or_else(unterminated))
}

/// Passes each event to `take` until it returns how the answer ended.
pub async fn fold<S>(
    mut events: EngineEvents<S>,
    mut take: impl FnMut(S) -> Option<End>,
) -> Result<End, EngineError> {
    loop {
        let event = poll_fn(|cx| poll_event(&mut events, cx)).await?;
        if let Some(ending) = take(event) {
            return Ok(ending);
        }
    }
}

/// Folds the events of an answer that is not streamed, and records how it ended.
pub(crate) async fn fold_recorded<S>(
    events: EngineEvents<S>,
    record: &mut Record,
    take: impl FnMut(S) -> Option<End>,
) -> Result<(), Refusal> {
    match fold(events, take).await {
        Ok(ending) => {
            record.finish(ending);
            Ok(())
        }
        Err(error) => {
            record.end(Outcome::of_failure(&error));
            let mut refusal = Refusal::from(error);
            // They are of the upstream's protocol.
            refusal.error.forget_reported();
            Err(refusal)
        }
    }
}
