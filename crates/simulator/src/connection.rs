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

/// A model server without a listener or a thread: the caller passes connections to it. Its pauses use the clock of the
/// runtime that it is awaited on, which tests can pause.
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
        Self { behave: Box::new(behave), log: Log::default(), gates: Semaphore::new(0) }
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
        for nth in 0.. {
            let play = match inbound::read(socket, &mut input).await {
                Ok(Some(request)) => (self.behave)(&self.log.record(connection, nth, request)),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => refusal(),
                Ok(None) | Err(_) => return End::Gone,
            };
            if let Err(end) = perform(&play, socket, &mut input, &self.gates).await {
                return end;
            }
        }
        End::Close
    }
}

/// The reply to an invalid request.
fn refusal() -> Play {
    Play::new().head(400, &[("connection", "close")], Framing::Length(0)).close()
}

/// Plays the reply to a request and watches for a disconnect of the peer. The error is the end of the connection.
async fn perform(play: &Play, socket: &mut impl Socket, input: &mut BytesMut, gates: &Semaphore) -> Result<(), End> {
    let (reader, writer) = split(socket);
    let mut player = Player { writer, gates, framing: Framing::Bare, out: Vec::new(), joins: false };
    tokio::select! {
        biased;
        played = player.play(play) => played,
        () = gone(reader, input) => Err(End::Gone),
    }
}

/// Waits until the peer closes its side or resets the connection. Bytes that arrive before are kept in `input`.
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
    match end {
        End::Gone => {}
        End::Reset => {
            let at = clock::now();
            // Fails only if the peer has already disconnected.
            let _ = socket.reset_at_close();
            return at;
        }
        End::Close => {
            let mut input = BytesMut::new();
            if socket.shutdown().await.is_ok() {
                // Closing a socket with unread bytes would send a RST, which discards data in flight.
                while let Ok(true) = inbound::read_more(&mut socket, &mut input).await {
                    input.clear();
                }
            }
        }
    }
    clock::now()
}

/// Plays the steps of a play on a socket.
struct Player<'a, S> {
    writer: WriteHalf<&'a mut S>,
    gates: &'a Semaphore,
    framing: Framing,
    /// The bytes of the next write.
    out: Vec<u8>,
    /// True if another head follows immediately. Both replies then go out in one write, so that the client cannot act
    /// in between.
    joins: bool,
}

impl<S: Socket> Player<'_, S> {
    /// Plays all steps. The error is the end of the connection.
    async fn play(&mut self, play: &Play) -> Result<(), End> {
        let mut steps = play.steps.iter().chain(play.forever.iter().cycle()).peekable();
        while let Some(step) = steps.next() {
            self.joins = matches!(steps.peek(), Some(Step::Head(..)));
            self.step(step).await?;
        }
        self.flush().await
    }

    async fn step(&mut self, step: &Step) -> Result<(), End> {
        // A head goes out in one write with the body that follows it immediately, as in real servers.
        if !matches!(step, Step::Bytes(_) | Step::Body(_) | Step::End | Step::Head(..)) {
            self.flush().await?;
        }
        match step {
            Step::Head(head, framing) => self.head(head, *framing),
            Step::Bytes(bytes) => {
                self.out.extend_from_slice(bytes);
                self.flush().await?;
            }
            Step::Body(bytes) => self.body(bytes).await?,
            Step::End if self.framing == Framing::Chunked => {
                self.out.extend_from_slice(b"0\r\n\r\n");
                self.flush_unless_joined().await?;
            }
            Step::End => self.flush_unless_joined().await?,
            Step::Pause(duration) => tokio::time::sleep(*duration).await,
            // An error means that all gates are open.
            Step::Gate => _ = self.gates.acquire().await.map(SemaphorePermit::forget),
            Step::Hold => std::future::pending().await,
            Step::Close => return Err(End::Close),
            Step::Reset => return Err(End::Reset),
        }
        Ok(())
    }

    fn head(&mut self, head: &[u8], framing: Framing) {
        self.framing = framing;
        self.out.extend_from_slice(head);
        match framing {
            Framing::Length(length) => self.out.extend(format!("content-length: {length}\r\n").bytes()),
            Framing::Chunked => self.out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            Framing::Bare => {}
        }
        self.out.extend_from_slice(b"\r\n");
    }

    async fn body(&mut self, bytes: &[u8]) -> Result<(), End> {
        if self.framing != Framing::Chunked {
            self.out.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            self.out.extend(format!("{:x}\r\n", bytes.len()).bytes());
            self.out.extend_from_slice(bytes);
            self.out.extend_from_slice(b"\r\n");
        }
        self.flush_unless_joined().await
    }

    /// Flushes the buffered bytes, unless they go out together with the next reply.
    async fn flush_unless_joined(&mut self) -> Result<(), End> {
        if self.joins { Ok(()) } else { self.flush().await }
    }

    async fn flush(&mut self) -> Result<(), End> {
        let written = self.writer.write_all(&self.out).await;
        self.out.clear();
        written.map_err(|_| End::Gone)
    }
}

/// Maximum number of bytes that are read ahead while a play is in progress.
const MAX_AHEAD: usize = 1 << 20;
