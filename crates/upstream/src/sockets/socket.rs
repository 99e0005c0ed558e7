//! One WebSocket to a host. As with HTTP, its reader drives it: there is no separate task.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use engine::EngineError;
use futures_util::{SinkExt as _, StreamExt as _};
use net::{Connection, LazyTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::credential::Credential;
use crate::sockets::event::Event;

/// A WebSocket that is open.
pub(crate) struct Socket {
    stream: WebSocketStream<Counted>,
    /// The time that opening it has taken.
    pub(crate) connect_time: Duration,
    /// The credential that it was opened with, unless that is the first one of the upstream.
    pub(crate) credential: Option<Credential>,
    /// The id of its latest response, if that can be continued.
    pub(crate) latest: Option<String>,
    /// The code that the server has closed it with.
    close_code: Option<CloseCode>,
    /// The timer for the waits of its readers.
    pub(crate) timer: LazyTimer,
}

/// A message of a server.
pub(crate) enum ServerMessage {
    Event(Event),
    Ping,
}

/// A connection that counts the bytes of a message that is not complete.
pub(crate) struct Counted {
    io: Box<dyn Connection>,
    unfinished: usize,
}

impl Socket {
    pub(crate) fn new(
        stream: WebSocketStream<Counted>,
        connect_time: Duration,
        credential: Option<Credential>,
    ) -> Self {
        Self {
            stream,
            connect_time,
            credential,
            latest: None,
            close_code: None,
            timer: LazyTimer::default(),
        }
    }

    /// Sends an event, and waits for the first one of the server.
    pub(crate) async fn ask(&mut self, event: Utf8Bytes) -> Result<Event, EngineError> {
        self.latest = None;
        match self.stream.send(Message::Text(event)).await {
            Ok(()) => self.event().await,
            // A server that refuses the size may close before it has received the whole message.
            Err(error @ Error::Io(_)) => self.event().await.map_err(|_| failure(&error)),
            Err(error) => Err(failure(&error)),
        }
    }

    /// Waits for the next event.
    async fn event(&mut self) -> Result<Event, EngineError> {
        loop {
            match poll_fn(|cx| self.poll_message(cx)).await? {
                ServerMessage::Event(event) => return Ok(event),
                ServerMessage::Ping => {}
            }
        }
    }

    /// Polls for the next message. Pings are answered.
    pub(crate) fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ServerMessage, EngineError>> {
        let message = ready!(self.stream.poll_next_unpin(cx));
        self.stream.get_mut().unfinished = 0;
        Poll::Ready(match message {
            Some(Ok(Message::Text(text))) => Ok(ServerMessage::Event(Event::new(text))),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {
                Ok(ServerMessage::Ping)
            }
            Some(Ok(Message::Binary(_))) => {
                Err(EngineError::Upstream("a binary message".to_owned()))
            }
            Some(Ok(Message::Close(frame))) => {
                self.close_code = frame.map(|frame| frame.code);
                Err(failure(&Error::ConnectionClosed))
            }
            None => Err(failure(&Error::ConnectionClosed)),
            Some(Err(error)) => Err(failure(&error)),
        })
    }

    /// Returns true if the server has neither closed the socket nor sent an event that nothing has
    /// asked for. Answers its pings.
    pub(crate) fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            match self.poll_message(cx) {
                Poll::Pending => return true,
                Poll::Ready(Ok(ServerMessage::Ping)) => {}
                Poll::Ready(Ok(ServerMessage::Event(_)) | Err(_)) => return false,
            }
        }
    }

    /// Returns true if the server has closed the socket because a message was too big for it to process
    /// (RFC 6455 §7.4.1).
    pub(crate) fn has_refused_size(&self) -> bool {
        self.close_code == Some(CloseCode::Size)
    }

    /// The number of bytes that are buffered of a message that is not complete.
    pub(crate) fn unfinished(&self) -> usize {
        self.stream.get_ref().unfinished
    }
}

fn failure(error: &Error) -> EngineError {
    match error {
        Error::Capacity(_) | Error::Protocol(_) | Error::Utf8(_) => {
            EngineError::Upstream(format!("malformed message: {error}"))
        }
        _ => EngineError::Truncated(format!("WebSocket closed: {error}")),
    }
}

impl Counted {
    pub(crate) fn new(io: Box<dyn Connection>) -> Self {
        Self { io, unfinished: 0 }
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, into))?;
        self.unfinished += into.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
