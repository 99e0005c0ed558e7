//! Per-connection state that is shared by the socket and the HTTP service.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use policy::lifecycle::AbortWatch;
use telemetry::close_reason::CloseReason;
use telemetry::outcome::Outcome;
use upstream::ClientSockets;

use crate::connection::timer::ConnectionTimer;
use crate::exchange::body::{BodyError, ClientBody};

/// The state of a client connection, which its requests share. A stream of HTTP/2 has a state of its
/// own, because it has a task of its own, and one request.
#[derive(Debug, Default)]
pub struct ConnectionState {
    /// True if bytes were received that belong to no completely read request.
    mid_request: AtomicBool,
    close_reason: OnceLock<CloseReason>,
    /// The timer of the task that serves the connection.
    pub timer: ConnectionTimer,
    /// The shutdown, for the requests of the connection.
    pub(crate) shutdown: AbortWatch,
    /// The connection of a stream.
    connection: Option<Arc<ConnectionState>>,
    /// The WebSockets to upstreams that the stream can use.
    pub(crate) sockets: Option<ClientSockets>,
}

/// The name of the key with which a WebSocket is opened: an extension of the response.
#[derive(Clone, Debug)]
pub struct OpenedBy(pub Arc<str>);

/// The body of a request, which notes on the connection when it was read to its end.
struct TrackedBody<B> {
    body: B,
    connection: Arc<ConnectionState>,
}

impl ConnectionState {
    /// Creates the state of a stream of HTTP/2.
    pub fn stream(connection: &Arc<Self>) -> Self {
        Self {
            connection: Some(Arc::clone(connection)),
            ..Self::default()
        }
    }

    /// Creates the state of a response over a WebSocket, whose connection has these WebSockets to
    /// upstreams.
    pub fn turn(connection: &Arc<Self>, sockets: ClientSockets) -> Self {
        Self {
            sockets: Some(sockets),
            ..Self::stream(connection)
        }
    }

    /// The transport of a request, unless it is plain HTTP.
    pub(crate) fn transport(&self) -> Option<&'static str> {
        self.sockets.is_some().then_some("websocket")
    }

    /// Notes that bytes were received.
    pub fn note_bytes(&self) {
        self.mid_request.store(true, Ordering::Relaxed);
    }

    /// True if the client may still be sending a request.
    pub fn is_mid_request(&self) -> bool {
        self.mid_request.load(Ordering::Relaxed)
    }

    /// True for a connection of HTTP/1.1 whose request has a body that was not read to its end. Unless
    /// the rest is at hand, the connection cannot be used again after the response.
    pub(crate) fn has_unread_body(&self) -> bool {
        self.connection.is_none() && self.is_mid_request()
    }

    /// Notes why the connection is closed. The first reason wins.
    pub fn close(&self, reason: CloseReason) {
        self.close_reason.get_or_init(|| reason);
    }

    /// The outcome of a response that was not read to its end.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.noted_reason() {
            Some(CloseReason::SlowReader) => Outcome::SlowReader,
            _ => Outcome::ClientGone,
        }
    }

    /// The reason that was noted for the stream, or for its connection.
    fn noted_reason(&self) -> Option<CloseReason> {
        let of_connection = || self.connection.as_ref()?.noted_reason();
        self.close_reason.get().copied().or_else(of_connection)
    }

    /// Returns the reason why the connection ended as its HTTP implementation says.
    pub fn close_reason(&self, end: HttpEnd) -> CloseReason {
        match (self.noted_reason(), end) {
            (Some(reason), _) => reason,
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

/// Wraps the body of a request that is received on `connection`, which notes when it was read to its
/// end.
pub fn tracked_body<B>(body: B, connection: Arc<ConnectionState>) -> ClientBody
where
    B: Body<Data = Bytes, Error: Into<BodyError>> + Send + Unpin + 'static,
{
    // The head may have been received together with earlier bytes, so it is noted again here.
    connection
        .mid_request
        .store(!body.is_end_stream(), Ordering::Relaxed);
    TrackedBody { body, connection }.boxed_unsync()
}

impl<B: Body> TrackedBody<B> {
    fn note_end(&self, ended: bool) {
        if ended || self.body.is_end_stream() {
            self.connection.mid_request.store(false, Ordering::Relaxed);
        }
    }
}

impl<B: Body<Error: Into<BodyError>>> TrackedBody<B> {
    /// Nothing that is wrong with the body of a stream can be answered: its errors end the stream.
    fn error(&self, error: B::Error) -> BodyError {
        match self.connection.connection {
            None => error.into(),
            Some(_) => io::Error::from(io::ErrorKind::ConnectionReset).into(),
        }
    }
}

impl<B> Body for TrackedBody<B>
where
    B: Body<Data = Bytes, Error: Into<BodyError>> + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.note_end(matches!(polled, Poll::Ready(None)));
        polled.map_err(|error| self.error(error))
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
    use http_body_util::{Empty, Full};

    use super::*;

    #[tokio::test]
    async fn a_refused_request_is_read_to_its_end() {
        let connection = Arc::<ConnectionState>::default();
        connection.note_bytes();
        let mut body = tracked_body(
            Full::new(Bytes::from_static(b"Hello.")),
            Arc::clone(&connection),
        );
        assert!(connection.is_mid_request());
        body.frame().await.unwrap().unwrap();
        assert!(!connection.is_mid_request());
        connection.note_bytes();
        assert!(connection.is_mid_request(), "the next request has started");
        drop(tracked_body(Empty::<Bytes>::new(), Arc::clone(&connection)));
        assert!(!connection.is_mid_request(), "it has no body");
    }

    #[test]
    fn stream_end_reason_defaults_to_its_connection() {
        let connection = Arc::<ConnectionState>::default();
        let [slow, other] = [(); 2].map(|()| ConnectionState::stream(&connection));
        slow.close(CloseReason::SlowReader);
        assert_eq!(
            [slow.outcome(), other.outcome()],
            [Outcome::SlowReader, Outcome::ClientGone]
        );
        assert_eq!(connection.close_reason(HttpEnd::Closed), CloseReason::Done);
        connection.close(CloseReason::SlowReader);
        assert_eq!(other.outcome(), Outcome::SlowReader);
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
