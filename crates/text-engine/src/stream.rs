//! The events of a generation as a stream that always ends with a word.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use engine::{EngineError, TextEvent};
use futures_core::Stream;
use tokio::sync::mpsc::Receiver;

/// What a generation tells, up to its end or its first error. Dropping it cancels the generation.
///
/// The channel holds one whole answer, so that a slow reader keeps nobody else from the place of its generation.
pub(crate) struct Events {
    /// Absent after the last event.
    told: Option<Receiver<Result<TextEvent, EngineError>>>,
}

impl Events {
    pub(crate) fn new(told: Receiver<Result<TextEvent, EngineError>>) -> Self {
        Self { told: Some(told) }
    }
}

impl Stream for Events {
    type Item = Result<TextEvent, EngineError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(told) = &mut self.told else { return Poll::Ready(None) };
        let lost = || Err(EngineError::Internal("the generation ended without a word".to_owned()));
        let event = ready!(told.poll_recv(context)).unwrap_or_else(lost);
        if matches!(event, Err(_) | Ok(TextEvent::Finished { .. })) {
            self.told = None;
        }
        Poll::Ready(Some(event))
    }
}
