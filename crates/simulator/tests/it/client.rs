//! A raw HTTP/1.1 client: it sends arbitrary bytes and reports the end of each reply.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A timeout that is not reached unless a test fails.
pub(crate) const GUARD: Duration = Duration::from_secs(20);

/// A reply, possibly truncated.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The headers, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The chunks of a chunked body, or else the complete body as one.
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) end: End,
}

/// The end of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    /// The body is complete, by the framing of the head.
    Complete,
    /// A FIN before the end of the body.
    Closed,
    /// A RST before the end of the body.
    Reset,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    #[track_caller]
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body()).expect("text")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body()).expect("JSON")
    }
}

/// An open connection.
pub(crate) struct Client {
    socket: TcpStream,
    /// Bytes that were read but not parsed yet.
    input: Vec<u8>,
}

impl Client {
    #[allow(clippy::disallowed_methods, reason = "the server under test is dialled, on loopback")]
    pub(crate) fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the server accepts");
        socket.set_read_timeout(Some(GUARD)).expect("a timeout can be set");
        socket.set_nodelay(true).expect("a socket can send at once");
        Self { socket, input: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).expect("the server reads");
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n", "simulator", body.len());
        self.send(head + &body);
    }

    /// Reads the next reply to its end.
    pub(crate) fn answer(&mut self) -> Answer {
        let head = self.head().expect("a head");
        self.body_of(head)
    }

    /// Reads the next head. The error is the end of the connection.
    pub(crate) fn head(&mut self) -> Result<Answer, End> {
        let mut line = || self.line().map(|line| String::from_utf8(line).expect("a head is text"));
        let status = line()?.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
        let mut headers = Vec::new();
        while let Some((name, value)) = line()?.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Answer { status, headers, chunks: Vec::new(), end: End::Complete })
    }

    /// Reads the body of a head.
    pub(crate) fn body_of(&mut self, mut head: Answer) -> Answer {
        if head.header("transfer-encoding") == Some("chunked") {
            head.end = loop {
                match self.chunk() {
                    Ok(chunk) if chunk.is_empty() => break End::Complete,
                    Ok(chunk) => head.chunks.push(chunk),
                    Err(end) => break end,
                }
            };
        } else if let Some(length) = head.header("content-length").map(|length| length.parse().expect("a length")) {
            head.end = self.fill(length).err().unwrap_or(End::Complete);
            head.chunks.push(self.take(length.min(self.input.len())));
        } else if head.status != 204 {
            head.end = self.fill(usize::MAX).expect_err("an end");
            head.chunks.push(self.take(self.input.len()));
        }
        head
    }

    /// Reads the next chunk; the last one is empty.
    pub(crate) fn chunk(&mut self) -> Result<Vec<u8>, End> {
        let size = self.line()?;
        let size = usize::from_str_radix(std::str::from_utf8(&size).expect("digits"), 16).expect("a size");
        self.fill(size + 2)?;
        let mut chunk = self.take(size + 2);
        assert_eq!(chunk.split_off(size), b"\r\n");
        Ok(chunk)
    }

    /// Reads exactly `length` bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        self.fill(length).expect("so many bytes");
        self.take(length)
    }

    /// Reads until the connection ends. Returns the bytes and the end.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, End) {
        let end = self.fill(usize::MAX).expect_err("an end");
        (self.take(self.input.len()), end)
    }

    /// Half-closes the connection, so that more can still be read.
    pub(crate) fn finish(&mut self) {
        self.socket.shutdown(Shutdown::Write).expect("an open socket");
    }

    /// Waits for bytes and drops the socket without reading them, which resets the connection.
    pub(crate) fn leave_unread(self) {
        assert!(self.socket.peek(&mut [0]).expect("bytes") > 0);
    }

    fn line(&mut self) -> Result<Vec<u8>, End> {
        loop {
            if let Some(end) = self.input.windows(2).position(|pair| pair == b"\r\n") {
                let mut line = self.take(end + 2);
                line.truncate(end);
                return Ok(line);
            }
            self.fill(self.input.len() + 1)?;
        }
    }

    /// Reads until `input` has this many bytes.
    fn fill(&mut self, length: usize) -> Result<(), End> {
        let mut buffer = vec![0; 64 << 10];
        while self.input.len() < length {
            match self.socket.read(&mut buffer) {
                Ok(0) => return Err(End::Closed),
                Ok(read) => self.input.extend(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(End::Reset),
                Err(error) => panic!("{error}"),
            }
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        self.input.drain(..length).collect()
    }
}
