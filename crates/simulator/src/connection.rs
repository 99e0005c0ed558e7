//! One connection: requests are read and plays are played, until either side ends it.

use std::io;
use std::time::Instant;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::clock;
use crate::inbound;
use crate::play::{Framing, Play, Step};
use crate::server::Shared;

/// A connection that can be served.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {
    /// From now on what is written leaves at once.
    ///
    /// # Errors
    /// When the connection is over.
    fn hurry(&self) -> io::Result<()>;

    /// From now on closing it is a RST.
    ///
    /// # Errors
    /// When the connection is over.
    fn reset_at_close(&self) -> io::Result<()>;
}

impl Socket for TcpStream {
    fn hurry(&self) -> io::Result<()> {
        self.set_nodelay(true)
    }

    fn reset_at_close(&self) -> io::Result<()> {
        self.set_zero_linger()
    }
}

/// Serves a connection to its end, and notes when that was.
pub(crate) async fn serve<S: Socket>(mut socket: S, connection: usize, shared: &Shared) {
    let end = converse(&mut socket, connection, shared).await;
    let at = part(socket, end).await;
    shared.log.disconnected(connection, at);
}

/// How a connection ends.
enum End {
    /// The peer is gone.
    Gone,
    /// With a FIN from here.
    Close,
    /// With a RST from here.
    Reset,
}

/// Answers request after request.
async fn converse<S: Socket>(socket: &mut S, connection: usize, shared: &Shared) -> End {
    // Each piece of a play leaves when it is played.
    if socket.hurry().is_err() {
        return End::Gone;
    }
    let mut input = BytesMut::new();
    for nth in 0.. {
        let message = match inbound::read(socket, &mut input).await {
            Ok(Some(message)) => message,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return refuse(socket).await,
            Ok(None) | Err(_) => return End::Gone,
        };
        let request = shared.log.asked(connection, nth, message);
        let play = (shared.behave)(&request);
        if let Some(end) = perform(&play, socket, &mut input, &shared.gates).await {
            return end;
        }
    }
    End::Close
}

async fn refuse(socket: &mut impl Socket) -> End {
    let said = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    if said.is_ok() { End::Close } else { End::Gone }
}

/// Plays a play, while it watches whether the peer is still there. `None` when the connection goes on.
async fn perform(play: &Play, socket: &mut impl Socket, input: &mut BytesMut, gates: &Semaphore) -> Option<End> {
    let (reader, writer) = split(socket);
    let mut stage = Stage { writer, gates, framing: Framing::Bare, out: Vec::new(), joins: false };
    tokio::select! {
        biased;
        end = stage.play(play) => end,
        () = gone(reader, input) => Some(End::Gone),
    }
}

/// Ends when the peer has closed its side or reset the connection. What comes before is kept.
async fn gone(mut reader: ReadHalf<&mut impl Socket>, input: &mut BytesMut) {
    while let Ok(true) = inbound::more(&mut reader, input).await {
        if input.len() > MAX_AHEAD {
            // Without reading on there is no telling; the play ends all the same.
            std::future::pending::<()>().await;
        }
    }
}

/// Ends the connection; when it was over for the peer too.
async fn part(mut socket: impl Socket, end: End) -> Instant {
    match end {
        End::Gone => {}
        End::Reset => {
            let at = clock::now();
            // When that fails the peer is gone already.
            let _ = socket.reset_at_close();
            return at;
        }
        End::Close => {
            if socket.shutdown().await.is_ok() {
                drain(&mut socket).await;
            }
        }
    }
    clock::now()
}

/// Reads until the peer closes: closing with bytes unread would be a reset, which takes away what is still on its way.
async fn drain(socket: &mut (impl AsyncRead + Unpin)) {
    let mut input = BytesMut::new();
    while let Ok(true) = inbound::more(socket, &mut input).await {
        input.clear();
    }
}

/// Where a play is played.
struct Stage<'a, S> {
    writer: WriteHalf<&'a mut S>,
    gates: &'a Semaphore,
    framing: Framing,
    /// What goes out with the next write.
    out: Vec<u8>,
    /// Whether another answer follows at once: both go out in one write, so that nobody can come in between.
    joins: bool,
}

impl<S: Socket> Stage<'_, S> {
    /// Plays it all; `None` when the connection goes on.
    async fn play(&mut self, play: &Play) -> Option<End> {
        let mut steps = play.in_order().peekable();
        while let Some(step) = steps.next() {
            self.joins = matches!(steps.peek(), Some(Step::Head(..)));
            match self.step(step).await {
                Ok(None) => {}
                Ok(Some(end)) => return Some(end),
                Err(_) => return Some(End::Gone),
            }
        }
        self.flush().await.err().map(|_| End::Gone)
    }

    async fn step(&mut self, step: &Step) -> io::Result<Option<End>> {
        // A head goes out with what follows it at once, as servers write it.
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
                self.leave().await?;
            }
            Step::End => self.leave().await?,
            Step::Pause(duration) => tokio::time::sleep(*duration).await,
            Step::Gate => self.gate().await,
            Step::Hold => std::future::pending().await,
            Step::Close => return Ok(Some(End::Close)),
            Step::Reset => return Ok(Some(End::Reset)),
        }
        Ok(None)
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

    async fn body(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.framing != Framing::Chunked {
            self.out.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            self.out.extend(format!("{:x}\r\n", bytes.len()).bytes());
            self.out.extend_from_slice(bytes);
            self.out.extend_from_slice(b"\r\n");
        }
        self.leave().await
    }

    async fn gate(&mut self) {
        // An error says that all gates are open.
        if let Ok(permit) = self.gates.acquire().await {
            permit.forget();
        }
    }

    /// Writes what is there, unless it goes out with the next answer.
    async fn leave(&mut self) -> io::Result<()> {
        if self.joins { Ok(()) } else { self.flush().await }
    }

    async fn flush(&mut self) -> io::Result<()> {
        let written = self.writer.write_all(&self.out).await;
        self.out.clear();
        written
    }
}

/// As much is taken in ahead of its turn while a play is on.
const MAX_AHEAD: usize = 1 << 20;
