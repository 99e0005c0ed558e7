//! Relays the stream of an upstream that uses the client's protocol. The guard forwards the events
//! unchanged once it has accepted them.

use std::task::{Context, Poll, ready};

use answer::Relay;
use policy::limit::Counts;
use relay::RelayProtocol;
use wire::ApiError;

use super::{AnswerStream, Progress, StreamFailure};

impl<P: RelayProtocol + Unpin> AnswerStream for Relay<P> {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        let before = out.len();
        let end = if let Some(mut opening) = self.opening.take() {
            out.append(&mut opening);
            self.end
        } else {
            ready!(self.poll_feed(cx, out))?
        };
        Poll::Ready(Ok(match end {
            Some(end) => Progress::Ended(end),
            None if out.len() > before => Progress::Written,
            None => Progress::Skipped,
        }))
    }

    fn counts(&self) -> Counts {
        Counts {
            usage: self.guard.usage(),
            events: self.guard.events(),
            content: self.guard.content_length(),
            pictures: self.guard.pictures().into(),
        }
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        // The failure continues the events that the guard has accepted.
        if let Some(mut opening) = self.opening.take() {
            out.append(&mut opening);
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

    fn finish(self: Box<Self>) {
        self.body.drain();
    }
}
