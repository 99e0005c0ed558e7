//! A streamed answer that no target has started yet.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use engine::EngineError;
use policy::limit::Counts;
use wire::ApiError;

use super::started::Started;
use super::{AnswerStream, Progress, StreamFailure};
use crate::exchange::refusal::Refusal;

/// A pending attempt, which resolves once a target has started to answer.
pub(crate) type Attempt<E> =
    Pin<Box<dyn Future<Output = Result<Started<StartedStream<E>>, Refusal>> + Send>>;

/// Creates the stream of an answer that has started, with the encoder of the client's protocol.
pub(crate) type StartedStream<E> = Box<dyn FnOnce(E) -> Box<dyn AnswerStream> + Send>;

/// Returns the start of a stream that does not need the encoder.
pub(crate) fn started<E>(stream: impl AnswerStream + 'static) -> StartedStream<E> {
    let stream: Box<dyn AnswerStream> = Box::new(stream);
    Box::new(|_| stream)
}

/// A stream that waits for an attempt. It writes nothing but keep-alives and the failure of the
/// attempt.
pub(crate) struct PendingAnswer<E> {
    attempt: Attempt<E>,
    /// `Some` until the attempt has resolved.
    encoder: Option<E>,
    write_failure: WriteFailure<E>,
}

/// Writes the failure of an answer that has not started.
pub(crate) type WriteFailure<E> = fn(&mut E, &ApiError, &mut Vec<u8>);

impl<E: Send + 'static> PendingAnswer<E> {
    pub(crate) fn boxed(
        attempt: Attempt<E>,
        encoder: E,
        write_failure: WriteFailure<E>,
    ) -> Box<dyn AnswerStream> {
        Box::new(Self {
            attempt,
            encoder: Some(encoder),
            write_failure,
        })
    }
}

impl<E: Send> AnswerStream for PendingAnswer<E> {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        _: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        let start = ready!(self.attempt.as_mut().poll(cx))?.answer;
        let resolved_twice = || EngineError::Internal("an attempt has resolved twice".to_owned());
        let encoder = self.encoder.take().ok_or_else(resolved_twice)?;
        Poll::Ready(Ok(Progress::Started(start(encoder))))
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        if let Some(encoder) = &mut self.encoder {
            (self.write_failure)(encoder, error, out);
        }
    }
}
