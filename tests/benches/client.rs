//! A connection that asks and reads with as little work as can be: what it costs is not what is measured.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// A connection that is used again for each question.
pub(crate) struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
}

/// A stream that was read to its end.
pub(crate) struct Streamed {
    /// From the question to the first event.
    pub(crate) first: Duration,
    /// How many events there were.
    pub(crate) events: usize,
}

impl Connection {
    /// Opens one.
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        #[allow(clippy::disallowed_methods, reason = "the server under test is dialled, on loopback")]
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, buffer: Vec::new() })
    }

    /// Asks and reads the whole reply; tells how long its body is.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> io::Result<usize> {
        self.buffer.resize(BUFFER, 0);
        self.socket.write_all(request).await?;
        let (head, mut read) = self.head().await?;
        let length = content_length(&self.buffer[..head]).ok_or_else(|| broken("no content-length"))?;
        while read < head + length {
            read += some(self.socket.read(&mut self.buffer).await?)?;
        }
        Ok(length)
    }

    /// Asks and reads the stream to its end.
    pub(crate) async fn stream(&mut self, request: &[u8]) -> io::Result<Streamed> {
        let asked = Instant::now();
        let mut events = self.begin(request).await?;
        let mut streamed = Streamed { first: asked.elapsed(), events: 0 };
        // What was read is after `KEPT` bytes of what was read before, so that nothing is cut apart.
        while !events.ended {
            streamed.events += events.count;
            let read = some(self.socket.read(&mut self.buffer[KEPT..]).await?)?;
            events = Events::of(&self.buffer[..KEPT + read]);
            self.buffer.copy_within(read..read + KEPT, 0);
        }
        streamed.events += events.count;
        Ok(streamed)
    }

    /// Asks and reads as far as the first event.
    pub(crate) async fn open_stream(&mut self, request: &[u8]) -> io::Result<()> {
        self.begin(request).await?;
        self.buffer = Vec::new();
        Ok(())
    }

    async fn begin(&mut self, request: &[u8]) -> io::Result<Events> {
        self.buffer.resize(BUFFER, 0);
        self.socket.write_all(request).await?;
        let (head, mut read) = self.head().await?;
        loop {
            let events = Events::of(&self.buffer[head - KEPT..read]);
            if events.count > 0 {
                self.buffer.copy_within(read - KEPT..read, 0);
                return Ok(events);
            }
            read += some(self.socket.read(&mut self.buffer[read..]).await?)?;
        }
    }

    /// Reads the head of an answer; tells where it ends, and how much was read.
    async fn head(&mut self) -> io::Result<(usize, usize)> {
        let mut read = 0;
        loop {
            read += some(self.socket.read(&mut self.buffer[read..]).await?)?;
            if let Some(end) = memmem::find(&self.buffer[..read], b"\r\n\r\n") {
                return match self.buffer.starts_with(b"HTTP/1.1 200 ") {
                    true => Ok((end + 4, read)),
                    false => Err(broken(&String::from_utf8_lossy(&self.buffer[..read]))),
                };
            }
        }
    }
}

/// What of a stream is in some bytes, of which the first [`KEPT`] were seen before.
struct Events {
    count: usize,
    ended: bool,
}

impl Events {
    fn of(bytes: &[u8]) -> Self {
        let count = memmem::find_iter(&bytes[KEPT - 1..], b"\n\n").count();
        Self { count, ended: bytes.ends_with(b"\r\n0\r\n\r\n") }
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    let mut lines = std::str::from_utf8(head).ok()?.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    value.trim().parse().ok()
}

fn some(read: usize) -> io::Result<usize> {
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

const BUFFER: usize = 128 << 10;
/// The last chunk, with the end of the one before it.
const KEPT: usize = 7;
