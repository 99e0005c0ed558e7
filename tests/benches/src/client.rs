//! An HTTP/1.1 client that does as little work as possible, so that its own cost does not affect
//! the measurement.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

/// A connection that is reused for each request.
pub struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
}

/// A response that was read completely.
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The length of its body.
    pub length: usize,
    /// True if it announces the end of the connection.
    pub closes: bool,
}

/// A stream that was read to its end.
pub struct Streamed {
    /// From the request to the first event.
    pub first: Duration,
    /// The number of events.
    pub events: usize,
}

impl Connection {
    /// Opens a connection.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        #[allow(
            clippy::disallowed_methods,
            reason = "the server under test is dialled, on loopback"
        )]
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            buffer: Vec::new(),
        })
    }

    /// Opens a connection whose receive buffer is as small as the system allows.
    pub async fn narrow(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(1)?;
        #[allow(
            clippy::disallowed_methods,
            reason = "the server under test is dialled, on loopback"
        )]
        let socket = socket.connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            buffer: Vec::new(),
        })
    }

    /// Sends a request and reads the complete reply; returns the length of its body.
    pub async fn ask(&mut self, request: &[u8]) -> io::Result<usize> {
        let answer = self.answer(request).await?;
        if answer.status == 200 {
            Ok(answer.length)
        } else {
            Err(broken(&format!("status {}", answer.status)))
        }
    }

    /// Sends a request and reads the complete response, whatever its status.
    pub async fn answer(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.buffer.resize(BUFFER, 0);
        self.socket.write_all(request).await?;
        let (head, mut read) = self.head().await?;
        let head_bytes = &self.buffer[..head];
        let status = status(head_bytes).ok_or_else(|| broken("no status"))?;
        let length = content_length(head_bytes).ok_or_else(|| broken("no content-length"))?;
        let closes = memmem::find(head_bytes, b"connection: close").is_some();
        while read < head + length {
            read += some(self.socket.read(&mut self.buffer).await?)?;
        }
        Ok(Answer {
            status,
            length,
            closes,
        })
    }

    /// Sends a request, and reads nothing.
    pub async fn ask_only(&mut self, request: &[u8]) -> io::Result<()> {
        self.socket.write_all(request).await
    }

    /// Reads everything up to the end of the connection; returns an error if that is not a proper
    /// one.
    pub async fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.socket.read_to_end(&mut rest).await?;
        Ok(rest)
    }

    /// Sends a request and reads the stream to its end.
    pub async fn stream(&mut self, request: &[u8]) -> io::Result<Streamed> {
        self.stream_in_step(request, |_| ()).await
    }

    /// Sends a request and reads the stream to its end. Each read reports how many events it had.
    pub async fn stream_in_step(
        &mut self,
        request: &[u8],
        received: impl Fn(usize),
    ) -> io::Result<Streamed> {
        let asked = Instant::now();
        let mut events = self.begin(request).await?;
        let mut streamed = Streamed {
            first: asked.elapsed(),
            events: 0,
        };
        // New data is read behind the last `KEPT` bytes of the data before, so that no token is
        // split.
        while !events.ended {
            streamed.events += events.count;
            received(events.count);
            let read = some(self.socket.read(&mut self.buffer[KEPT..]).await?)?;
            events = Events::of(&self.buffer[..KEPT + read]);
            self.buffer.copy_within(read..read + KEPT, 0);
        }
        streamed.events += events.count;
        Ok(streamed)
    }

    /// Sends a request and reads up to the first event.
    pub async fn open_stream(&mut self, request: &[u8]) -> io::Result<()> {
        self.begin(request).await?;
        self.buffer = Vec::new();
        Ok(())
    }

    async fn begin(&mut self, request: &[u8]) -> io::Result<Events> {
        self.buffer.resize(BUFFER, 0);
        self.socket.write_all(request).await?;
        let (head, mut read) = self.head().await?;
        if status(&self.buffer[..head]) != Some(200) {
            return Err(broken(&String::from_utf8_lossy(&self.buffer[..read])));
        }
        loop {
            let events = Events::of(&self.buffer[head - KEPT..read]);
            if events.count > 0 {
                self.buffer.copy_within(read - KEPT..read, 0);
                return Ok(events);
            }
            read += some(self.socket.read(&mut self.buffer[read..]).await?)?;
        }
    }

    /// Reads the head of a response; returns its length, and how much was read.
    async fn head(&mut self) -> io::Result<(usize, usize)> {
        let mut read = 0;
        loop {
            read += some(self.socket.read(&mut self.buffer[read..]).await?)?;
            if let Some(end) = memmem::find(&self.buffer[..read], b"\r\n\r\n") {
                return Ok((end + 4, read));
            }
        }
    }
}

/// Counts the events in some bytes. The first [`KEPT`] bytes were seen before.
struct Events {
    count: usize,
    ended: bool,
}

impl Events {
    fn of(bytes: &[u8]) -> Self {
        let count = memmem::find_iter(&bytes[KEPT - 1..], b"\n\n").count();
        Self {
            count,
            ended: bytes.ends_with(b"\r\n0\r\n\r\n"),
        }
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let code = head.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    std::str::from_utf8(code).ok()?.parse().ok()
}

fn content_length(head: &[u8]) -> Option<usize> {
    let mut lines = std::str::from_utf8(head)
        .ok()?
        .lines()
        .filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    value.trim().parse().ok()
}

fn some(read: usize) -> io::Result<usize> {
    if read == 0 {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok(read)
    }
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

const BUFFER: usize = 128 << 10;
/// The last chunk, with the end of the one before it.
const KEPT: usize = 7;
