//! Per-connection state that is shared by the socket and the HTTP service.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use policy::lifecycle::AbortWatch;
use telemetry::close_reason::CloseReason;
use telemetry::outcome::Outcome;

use crate::connection::timer::ConnectionTimer;

/// The state of a client connection, which its requests share.
#[derive(Debug, Default)]
pub struct ConnectionState {
    /// True if bytes were received that belong to no completely read request.
    mid_request: AtomicBool,
    close_reason: OnceLock<CloseReason>,
    /// The timer of the task that serves the connection.
    pub timer: ConnectionTimer,
    /// The shutdown, for the requests of the connection.
    pub(crate) shutdown: AbortWatch,
}

/// The body of a request, which notes on the connection when it was read to its end.
#[derive(Debug)]
pub struct TrackedBody<B> {
    body: B,
    connection: Arc<ConnectionState>,
}

impl ConnectionState {
    /// Notes that bytes were received.
    pub fn note_bytes(&self) {
        self.mid_request.store(true, Ordering::Relaxed);
    }

    /// True if the client may still be sending a request.
    pub fn is_mid_request(&self) -> bool {
        self.mid_request.load(Ordering::Relaxed)
    }

    /// Notes why the connection is closed. The first reason wins.
    pub fn close(&self, reason: CloseReason) {
        self.close_reason.get_or_init(|| reason);
    }

    /// The outcome of a response that was not read to its end.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.close_reason.get() {
            Some(CloseReason::SlowReader) => Outcome::SlowReader,
            _ => Outcome::ClientGone,
        }
    }

    /// Returns the reason why the connection ended as its HTTP implementation says.
    pub fn close_reason(&self, end: HttpEnd) -> CloseReason {
        match (self.close_reason.get(), end) {
            (Some(reason), _) => *reason,
            (None, HttpEnd::Violation) => CloseReason::BadHead,
            (None, HttpEnd::Timeout) if self.is_mid_request() => CloseReason::SlowHead,
            (None, HttpEnd::Timeout) => CloseReason::Idle,
            (None, HttpEnd::Closed) => CloseReason::Done,
        }
    }
}

/// How the HTTP implementation ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpEnd {
    /// It was closed after its last response, or by the client.
    Closed,
    /// A request head violates HTTP.
    Violation,
    /// A request head was not complete in time.
    Timeout,
}

impl<B: Body> TrackedBody<B> {
    /// Wraps a body that is received on `connection`.
    pub fn new(body: B, connection: Arc<ConnectionState>) -> Self {
        // The head may have been received together with earlier bytes, so it is noted again here.
        connection
            .mid_request
            .store(!body.is_end_stream(), Ordering::Relaxed);
        Self { body, connection }
    }

    fn note_end(&self, ended: bool) {
        if ended || self.body.is_end_stream() {
            self.connection.mid_request.store(false, Ordering::Relaxed);
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
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
    async fn a_refused_request_is_read_to_its_end() {
        let connection = Arc::<ConnectionState>::default();
        connection.note_bytes();
        let mut body = TrackedBody::new(
            Full::new(Bytes::from_static(b"Hello.")),
            Arc::clone(&connection),
        );
        assert!(connection.is_mid_request());
        body.frame().await.unwrap().unwrap();
        assert!(!connection.is_mid_request());
        connection.note_bytes();
        assert!(connection.is_mid_request(), "the next request has started");
        drop(TrackedBody::new(
            Empty::<Bytes>::new(),
            Arc::clone(&connection),
        ));
        assert!(!connection.is_mid_request(), "it has no body");
    }

    #[test]
    fn first_close_reason_is_kept_and_sets_the_outcome() {
        let connection = ConnectionState::default();
        assert_eq!(
            (
                connection.close_reason(HttpEnd::Closed),
                connection.outcome()
            ),
            (CloseReason::Done, Outcome::ClientGone)
        );
        connection.close(CloseReason::SlowReader);
        connection.close(CloseReason::NoFirstByte);
        assert_eq!(
            (
                connection.close_reason(HttpEnd::Closed),
                connection.outcome()
            ),
            (CloseReason::SlowReader, Outcome::SlowReader)
        );
    }
}
