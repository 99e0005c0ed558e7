//! One connection: reads requests and plays their replies until either side ends it.

use std::io;
use std::time::Instant;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::clock;
use crate::inbound;
use crate::log::Log;
use crate::play::{Framing, Play, Step};
use crate::request::Request;
use crate::websocket;

/// A connection that can be served.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {
    /// Makes closing the socket send a RST.
    ///
    /// # Errors
    /// If the connection has ended.
    fn reset_at_close(&self) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn reset_at_close(&self) -> io::Result<()> {
        self.set_zero_linger()
    }
}

/// A model server without a listener or a thread: the caller passes connections to it. Its pauses
/// use the clock of the runtime that it is awaited on, which tests can pause.
pub struct Detached {
    behave: Box<dyn Fn(&Request) -> Play + Send + Sync>,
    pub(crate) log: Log,
    /// One permit for each gate that may be passed.
    pub(crate) gates: Semaphore,
}

/// The way in which a connection ends.
enum End {
    /// The peer has disconnected.
    Gone,
    /// The server sends a FIN.
    Close,
    /// The server sends a RST.
    Reset,
}

impl Detached {
    /// Creates a server that replies to every request with the result of `behave`.
    pub fn new(behave: impl Fn(&Request) -> Play + Send + Sync + 'static) -> Self {
        Self {
            behave: Box::new(behave),
            log: Log::default(),
            gates: Semaphore::new(0),
        }
    }

    /// Serves a connection until it ends.
    pub async fn serve<S: Socket>(&self, mut socket: S) {
        let connection = self.log.connected();
        let end = self.serve_requests(&mut socket, connection).await;
        let at = end_connection(socket, end).await;
        self.log.disconnected(connection, at);
    }

    /// The requests so far, like [`Simulator::requests`](crate::Simulator::requests).
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.log.requests()
    }

    /// Replies to requests until the connection ends.
    async fn serve_requests(&self, socket: &mut impl Socket, connection: usize) -> End {
        let mut input = BytesMut::new();
        // The handshake, once the connection is a WebSocket.
        let mut handshake: Option<Request> = None;
        for nth in 0.. {
            let read = match &handshake {
                None => inbound::read(socket, &mut input).await,
                Some(handshake) => {
                    let message = websocket::read(socket, &mut input).await;
                    message.map(|message| message.map(|body| handshake.of_message(body)))
                }
            };
            let play = match read {
                Ok(Some(request)) => {
                    let request = self.log.record(connection, nth, request);
                    let play = (self.behave)(&request);
                    match request.is_message() {
                        true => play.as_messages(),
                        false => {
                            handshake = play.switches().then_some(request);
                            play
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => Play::new()
                    .head(400, &[("connection", "close")], Framing::Length(0))
                    .close(),
                Ok(None) | Err(_) => return End::Gone,
            };
            let (reader, writer) = split(&mut *socket);
            let mut player = Player {
                writer,
                gates: &self.gates,
                framing: Framing::Bare,
                out: Vec::new(),
            };
            let played = tokio::select! {
                biased;
                played = player.play(&play) => played,
                () = gone(reader, &mut input) => Err(End::Gone),
            };
            if let Err(end) = played {
                return end;
            }
        }
        End::Close
    }
}

/// Waits until the peer closes its side or resets the connection. Bytes that arrive before are kept
/// in `input`.
async fn gone(mut reader: ReadHalf<&mut impl Socket>, input: &mut BytesMut) {
    while let Ok(true) = inbound::read_more(&mut reader, input).await {
        if input.len() > MAX_AHEAD {
            // A disconnect cannot be noticed without reading more; the play still ends.
            std::future::pending::<()>().await;
        }
    }
}

/// Ends the connection. Returns the time at which it had ended for the peer as well.
async fn end_connection(mut socket: impl Socket, end: End) -> Instant {
    let at = clock::now();
    match end {
        End::Gone => {}
        // Fails only if the peer has already disconnected.
        End::Reset => _ = socket.reset_at_close(),
        End::Close => {
            let mut input = BytesMut::new();
            if socket.shutdown().await.is_ok() {
                // Closing a socket with unread bytes would send a RST, which discards data in
                // flight.
                while let Ok(true) = inbound::read_more(&mut socket, &mut input).await {
                    input.clear();
                }
            }
            return clock::now();
        }
    }
    at
}

/// Plays the steps of a play on a socket.
struct Player<'a, S> {
    writer: WriteHalf<&'a mut S>,
    gates: &'a Semaphore,
    framing: Framing,
    /// The bytes of the next write.
    out: Vec<u8>,
}

impl<S: Socket> Player<'_, S> {
    /// Plays all steps. The error is the end of the connection.
    async fn play(&mut self, play: &Play) -> Result<(), End> {
        let mut place = 0;
        while let Some(step) = play.step_at(place) {
            place += 1;
            self.step(step, play.step_at(place)).await?;
        }
        self.flush().await
    }

    async fn step(&mut self, step: &Step, next: Option<&Step>) -> Result<(), End> {
        if !matches!(
            step,
            Step::Bytes(_) | Step::Body(_) | Step::End | Step::Head(..)
        ) {
            self.flush().await?;
        }
        match step {
            Step::Head(head, framing) => self.head(head, *framing),
            Step::Bytes(bytes) => self.out.extend_from_slice(bytes),
            Step::Body(bytes) => self.body(bytes),
            Step::End if self.framing == Framing::Chunked => {
                self.out.extend_from_slice(b"0\r\n\r\n");
            }
            Step::End => {}
            Step::Pause(duration) => tokio::time::sleep(*duration).await,
            // An error means that all gates are open.
            Step::Gate => _ = self.gates.acquire().await.map(SemaphorePermit::forget),
            Step::Hold => std::future::pending().await,
            Step::Close => return Err(End::Close),
            Step::Reset => return Err(End::Reset),
        }
        match (step, next) {
            // A head goes out in one write with the body that follows it immediately, as in real
            // servers.
            (Step::Head(..), _) => Ok(()),
            // Two replies go out in one write as well, so that the client cannot act in between.
            (Step::Body(_) | Step::End, Some(Step::Head(..))) => Ok(()),
            _ => self.flush().await,
        }
    }

    fn head(&mut self, head: &[u8], framing: Framing) {
        self.framing = framing;
        self.out.extend_from_slice(head);
        match framing {
            Framing::Length(length) => self
                .out
                .extend(format!("content-length: {length}\r\n").bytes()),
            Framing::Chunked => self
                .out
                .extend_from_slice(b"transfer-encoding: chunked\r\n"),
            Framing::Bare => {}
        }
        self.out.extend_from_slice(b"\r\n");
    }

    fn body(&mut self, bytes: &[u8]) {
        if self.framing != Framing::Chunked {
            self.out.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            self.out.extend(format!("{:x}\r\n", bytes.len()).bytes());
            self.out.extend_from_slice(bytes);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    async fn flush(&mut self) -> Result<(), End> {
        let written = self.writer.write_all(&self.out).await;
        self.out.clear();
        written.map_err(|_| End::Gone)
    }
}

/// Maximum number of bytes that are read ahead while a play is in progress.
const MAX_AHEAD: usize = 1 << 20;
