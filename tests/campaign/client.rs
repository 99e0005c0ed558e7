//! The bytes that a client sends over a connection in memory, and the responses it reads from it.

use std::io;

use serde_json::Value;
use simulator::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fault::Fault;
use crate::law::CLIENT_KEY;
use crate::pipe::Pipe;
use crate::question::{Question, ask, path, word};

/// A response, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// True if the body came to its proper end.
    pub(crate) complete: bool,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("bodies are UTF-8")
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.status == 200 && self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Parses the bytes of a response, complete or not. Returns `None` without a complete head.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).expect("a head is ASCII");
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header has a colon");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let mut response = Self { status, headers: lines.map(header).collect(), ..Self::default() };
        let rest = &bytes[end + 4..];
        if response.header("transfer-encoding") == Some("chunked") {
            response.chunks(rest);
        } else {
            let length = response.header("content-length").map_or(0, |length| length.parse().expect("a length"));
            assert!(rest.len() <= length, "bytes behind the body");
            response.complete = rest.len() == length;
            response.body = rest.to_vec();
        }
        Some(response)
    }

    fn chunks(&mut self, mut rest: &[u8]) {
        while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
            let size = std::str::from_utf8(&rest[..line]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
            let size = size.expect("a chunk has a size");
            let data = &rest[line + 2..];
            if size == 0 {
                self.complete = data.starts_with(b"\r\n");
                assert!(!self.complete || data.len() == 2, "bytes behind the last chunk");
                return;
            }
            let Some(chunk) = data.get(..size) else { return };
            self.body.extend(chunk);
            let Some(after) = data[size..].strip_prefix(b"\r\n") else { return };
            rest = after;
        }
    }
}

/// The bytes of a request, with headers that must not be forwarded.
pub(crate) fn request(fault: &Fault) -> Vec<u8> {
    let (path, (kind, body)) = match fault.client {
        Protocol::Images => (fault.drawing.path(), fault.drawing.request(&fault.nonce(), fault.stream)),
        client => (path(client), ("application/json", words(fault).to_string().into_bytes())),
    };
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {CLIENT_KEY}\r\ncontent-type: {kind}\r\n\
         anthropic-version: 2023-06-01\r\ncookie: session=private\r\nx-forwarded-for: 203.0.113.9\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}

fn words(fault: &Fault) -> Value {
    let model = word(fault.upstream);
    match fault.question {
        Question::Text => ask(fault.client, model, &fault.nonce(), fault.stream),
        question => question.body(fault.client, model, fault.stream),
    }
}

/// Reads until the response is complete, or `enough` bytes are there, or nothing more arrives.
pub(crate) async fn read(pipe: &mut Pipe, at_once: usize, enough: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    read_into(&mut bytes, pipe, at_once, enough).await;
    bytes
}

/// As [`read`], appending to what was read before.
pub(crate) async fn read_into(bytes: &mut Vec<u8>, pipe: &mut Pipe, at_once: usize, enough: usize) {
    let mut buffer = vec![0; at_once];
    while bytes.len() < enough && !ends(bytes) {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => bytes.extend(&buffer[..read]),
        }
    }
}

/// Returns true if a response is complete, by a cheap check.
fn ends(bytes: &[u8]) -> bool {
    let is_near = bytes.ends_with(b"0\r\n\r\n") || bytes.ends_with(b"}") || bytes.ends_with(b"\r\n\r\n");
    is_near && Response::parse(bytes).is_some_and(|response| response.complete)
}

/// Writes in pieces of this size.
pub(crate) async fn write(pipe: &mut Pipe, bytes: &[u8], at_once: usize) -> io::Result<()> {
    for piece in bytes.chunks(at_once) {
        pipe.write_all(piece).await?;
    }
    Ok(())
}
