//! The events of a generation as a stream that always ends with a terminal event or an error.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use engine::{EngineError, TextEvent};
use futures_core::Stream;
use tokio::sync::mpsc::Receiver;

/// The events of a generation, up to the terminal event or the first error. Dropping it cancels the generation.
///
/// The channel holds one complete answer, so that a slow client does not block a generation slot.
pub(crate) struct EventStream {
    /// `None` after the last event.
    receiver: Option<Receiver<Result<TextEvent, EngineError>>>,
}

impl EventStream {
    pub(crate) fn new(receiver: Receiver<Result<TextEvent, EngineError>>) -> Self {
        Self { receiver: Some(receiver) }
    }
}

impl Stream for EventStream {
    type Item = Result<TextEvent, EngineError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(receiver) = &mut self.receiver else { return Poll::Ready(None) };
        let missing_end = || Err(EngineError::Internal("generation ended without a terminal event".to_owned()));
        let event = ready!(receiver.poll_recv(context)).unwrap_or_else(missing_end);
        if matches!(event, Err(_) | Ok(TextEvent::Finished { .. })) {
            self.receiver = None;
        }
        Poll::Ready(Some(event))
    }
}
