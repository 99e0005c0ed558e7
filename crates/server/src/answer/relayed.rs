//! Relays the stream of an upstream that uses the client's protocol.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use translate::relay::{End, Guard, RelayProtocol};
use upstream::IncomingBody;
use upstream::relay::Relay;
use wire::ApiError;

use super::{AnswerStream, Progress, StreamFailure};

/// The stream of an upstream, whose events are forwarded unchanged once the guard has accepted them.
pub(crate) struct RelayedAnswer<P> {
    guard: Guard<P>,
    /// The events that were read before the stream was relayed, until they are written.
    opening: Option<Opening>,
    body: IncomingBody,
    idle_timeout: Duration,
}

struct Opening {
    bytes: Vec<u8>,
    /// The end of the stream, if these are all of its events.
    end: Option<End>,
}

impl<P: RelayProtocol> RelayedAnswer<P> {
    /// Relays a stream that was read up to its first event.
    pub(crate) fn new(relay: Relay<P>, idle_timeout: Duration) -> Self {
        let Relay { guard, opening, end, body } = relay;
        Self { guard, opening: Some(Opening { bytes: opening, end }), body, idle_timeout }
    }
}

impl<P: RelayProtocol + Unpin> AnswerStream for RelayedAnswer<P> {
    fn poll_write(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<Result<Progress, StreamFailure>> {
        let before = out.len();
        let end = if let Some(Opening { mut bytes, end }) = self.opening.take() {
            out.append(&mut bytes);
            end
        } else if let Some(chunk) = ready!(self.body.poll_chunk(cx))? {
            self.guard.feed(chunk, out)?
        } else {
            Some(self.guard.finish(out)?)
        };
        Poll::Ready(Ok(match end {
            Some(end) => Progress::Ended(end.into()),
            None if out.len() > before => Progress::Written,
            None => Progress::Skipped,
        }))
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        // The failure continues the events that the guard has accepted.
        if let Some(Opening { mut bytes, .. }) = self.opening.take() {
            out.append(&mut bytes);
        }
        self.guard.fail(error, out);
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        if self.opening.is_some() {
            // An event of the protocol must not come before the first one of the stream.
            return sse::comment("keep-alive", out);
        }
        self.guard.keep_alive(out);
    }

    fn idle_timeout(&self) -> Option<Duration> {
        Some(self.idle_timeout)
    }

    fn finish(self: Box<Self>) {
        self.body.drain();
    }
}
