//! What the two ends of a connection know of each other: its socket, and what reads requests from it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::outcome::Outcome;

/// How far a client has been heard out, shared by all that serve its connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    /// Whether bytes came that belong to no request which was read to its end.
    midway: AtomicBool,
    given_up: OnceLock<CloseReason>,
}

/// Why a connection ended, from a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// One side was done.
    Done,
    /// Nothing was asked for a while.
    Idle,
    /// Nothing was ever sent on it.
    NoFirstByte,
    /// The head of a request did not come in time.
    SlowHead,
    /// What came is no request of HTTP/1.
    BadHead,
    /// The client did not take what it was sent.
    SlowReader,
}

/// The body of a request, which tells when it was read to its end.
#[derive(Debug)]
pub(crate) struct TrackedBody<B> {
    body: B,
    line: Arc<ConnectionState>,
}

impl ConnectionState {
    /// Notes that something came.
    pub(crate) fn hear(&self) {
        self.midway.store(true, Ordering::Relaxed);
    }

    /// Whether the client may still be sending what it began.
    pub(crate) fn is_midway(&self) -> bool {
        self.midway.load(Ordering::Relaxed)
    }

    /// Notes why the client is given up.
    pub(crate) fn give_up(&self, why: CloseReason) {
        self.given_up.get_or_init(|| why);
    }

    /// How an answer ended that was not taken to its end.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.given_up.get() {
            Some(CloseReason::SlowReader) => Outcome::SlowReader,
            _ => Outcome::ClientGone,
        }
    }

    /// Why the connection ended that was served so.
    pub(crate) fn parting(&self, served: &hyper::Result<()>) -> CloseReason {
        match (self.given_up.get(), served) {
            (Some(why), _) => *why,
            (None, Err(error)) if error.is_parse() => CloseReason::BadHead,
            (None, Err(error)) if error.is_timeout() && self.is_midway() => CloseReason::SlowHead,
            (None, Err(error)) if error.is_timeout() => CloseReason::Idle,
            (None, _) => CloseReason::Done,
        }
    }
}

impl CloseReason {
    /// The word for logs and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Idle => "idle",
            Self::NoFirstByte => "no_first_byte",
            Self::SlowHead => "slow_head",
            Self::BadHead => "bad_head",
            Self::SlowReader => "slow_reader",
        }
    }
}

impl<B: Body> TrackedBody<B> {
    /// A body that comes on `line`.
    pub(crate) fn new(body: B, line: Arc<ConnectionState>) -> Self {
        // Its head may have come with what came before it.
        line.midway.store(!body.is_end_stream(), Ordering::Relaxed);
        Self { body, line }
    }

    fn note_end(&self, ended: bool) {
        if ended || self.body.is_end_stream() {
            self.line.midway.store(false, Ordering::Relaxed);
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.note_end(matches!(polled, Poll::Ready(None)));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Empty, Full};

    use super::*;

    #[tokio::test]
    async fn a_client_is_heard_out_at_the_end_of_its_request() {
        let line = Arc::<ConnectionState>::default();
        line.hear();
        let mut body = TrackedBody::new(Full::new(Bytes::from_static(b"Hello.")), Arc::clone(&line));
        assert!(line.is_midway());
        body.frame().await.unwrap().unwrap();
        assert!(!line.is_midway());
        line.hear();
        assert!(line.is_midway(), "the next request has begun");
        drop(TrackedBody::new(Empty::<Bytes>::new(), Arc::clone(&line)));
        assert!(!line.is_midway(), "it has no body");
    }

    #[test]
    fn what_the_socket_knows_is_why_a_connection_ended() {
        let line = ConnectionState::default();
        assert_eq!((line.parting(&Ok(())), line.outcome()), (CloseReason::Done, Outcome::ClientGone));
        line.give_up(CloseReason::SlowReader);
        line.give_up(CloseReason::NoFirstByte);
        assert_eq!((line.parting(&Ok(())), line.outcome()), (CloseReason::SlowReader, Outcome::SlowReader));
    }
}
