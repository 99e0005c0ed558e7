//! The body of a response over a WebSocket.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use engine::EngineError;
use net::LazyTimer;

use crate::sockets::event::Event;
use crate::sockets::socket::{ServerMessage, Socket};
use crate::sockets::{ClientSockets, HostId};

/// The events of one response as an event stream, or the error that stands for an HTTP response.
/// Dropped before its end, it closes the socket: a server cannot be stopped otherwise.
pub(crate) struct Turn {
    socket: Box<Socket>,
    /// The host of the socket, and the sockets of the client's connection.
    home: (HostId, ClientSockets),
    /// The first piece, until it was returned.
    first: Option<Bytes>,
    /// True if the last event was received.
    has_ended: bool,
}

impl Turn {
    /// Creates the body of the response that begins with this event.
    pub(crate) fn new(socket: Box<Socket>, home: (HostId, ClientSockets), first: Event) -> Self {
        let mut this = Self {
            socket,
            home,
            has_ended: false,
            first: None,
        };
        this.note(&first);
        this.first = Some(match first.refusal() {
            Some(_) => first.into_bytes(),
            None => first.encoded(),
        });
        this
    }

    /// Notes if an event is the last one, and the response that it ends.
    fn note(&mut self, event: &Event) {
        if event.is_end() {
            self.has_ended = true;
            self.socket.latest = event.response_id();
        }
    }

    /// Returns true once the body was returned completely.
    pub(crate) fn is_end(&self) -> bool {
        self.has_ended && self.first.is_none()
    }

    /// Polls for the next event or comment, which is `None` at the end.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, EngineError>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Ok(Some(first)));
        }
        if self.has_ended {
            return Poll::Ready(Ok(None));
        }
        let piece = match ready!(self.socket.poll_message(cx))? {
            ServerMessage::Event(event) => {
                self.note(&event);
                event.encoded()
            }
            ServerMessage::Ping => Bytes::from_static(b": ping\n\n"),
        };
        Poll::Ready(Ok(Some(piece)))
    }

    /// The number of bytes that are buffered of an event that is not complete.
    pub(crate) fn unfinished(&self) -> usize {
        self.socket.unfinished()
    }

    pub(crate) fn timer(&mut self) -> &mut LazyTimer {
        &mut self.socket.timer
    }

    /// Returns the socket to the client's connection, after the end of the body.
    pub(crate) fn release(self) {
        let (host, sockets) = self.home;
        sockets.put(host, self.socket);
    }
}
