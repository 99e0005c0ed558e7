//! Per-connection state that is shared by the socket and the HTTP service.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use policy::lifecycle::AbortWatch;
use telemetry::close_reason::CloseReason;
use telemetry::outcome::Outcome;
use upstream::ClientSockets;

use crate::connection::timer::ConnectionTimer;

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

    /// Notes whether a part of the body of the current request is still to be read.
    pub(super) fn note_body(&self, is_unread: bool) {
        self.mid_request.store(is_unread, Ordering::Relaxed);
    }

    /// True for a stream of HTTP/2, or a response over a WebSocket.
    pub(super) fn is_stream(&self) -> bool {
        self.connection.is_some()
    }

    /// True if the client may still be sending a request.
    pub fn is_mid_request(&self) -> bool {
        self.mid_request.load(Ordering::Relaxed)
    }

    /// True for a connection of HTTP/1.1 whose request has a body that was not read to its end. Unless
    /// the rest is at hand, the connection cannot be used again after the response.
    pub(crate) fn has_unread_body(&self) -> bool {
        !self.is_stream() && self.is_mid_request()
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

#[cfg(test)]
mod tests {
    use super::*;

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
