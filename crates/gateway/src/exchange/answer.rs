//! Streamed answers, as bytes of the client's protocol.
//!
//! A `PendingAnswer` waits until a target has started to answer. The answer is then relayed
//! (`Relay`), or encoded from the neutral events of a model by its endpoint (`TranslatedText`,
//! `TranslatedImages`). `CompleteImages` writes the complete reply of an upstream as a stream.

pub mod engine_events;
pub(crate) mod pending;
mod relayed;
pub(crate) mod started;

use std::task::{Context, Poll};

use engine::EngineError;
use policy::limit::Counts;
use relay::End;
use telemetry::outcome::Outcome;
use wire::ApiError;

use crate::exchange::refusal::{self, Refusal};

/// A streamed answer. It is pulled, and stops when it is dropped.
pub(crate) trait AnswerStream: Send {
    /// Appends the next bytes of the stream to `out`. A failure that it returns is not written yet.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>>;

    /// Returns the counts of the answer so far. It is asked for them once, at its end.
    fn counts(&self) -> Counts;

    /// Writes the failure that ends the stream.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>);

    fn keep_alive(&self, out: &mut Vec<u8>) {
        sse::comment("keep-alive", out);
    }

    /// Releases the source after the last event has been written.
    fn finish(self: Box<Self>) {}
}

/// The effect of one step of a stream.
pub(crate) enum Progress {
    /// A target has started to answer: the rest of the answer comes from this stream.
    Started(Box<dyn AnswerStream>),
    /// The events that open the stream were written, which have no content.
    Opened,
    /// Content was written.
    Written,
    /// Nothing was written.
    Skipped,
    /// The last event was written.
    Ended(End),
}

/// The failure of an answer after its status was sent.
#[derive(Debug)]
pub(crate) struct StreamFailure {
    /// The error for the client.
    pub(crate) error: ApiError,
    /// The cause, for the log alone.
    pub(crate) cause: Option<String>,
    pub(crate) outcome: Outcome,
}

impl From<EngineError> for StreamFailure {
    fn from(error: EngineError) -> Self {
        let outcome = Outcome::of_failure(&error);
        Self {
            error: vendor::api_error(&error),
            cause: refusal::cause(&error),
            outcome,
        }
    }
}

impl From<Refusal> for StreamFailure {
    fn from(refusal: Refusal) -> Self {
        let outcome = Outcome::of_refusal(&refusal.error);
        Self {
            error: refusal.error,
            cause: refusal.cause.map(Into::into),
            outcome,
        }
    }
}
