//! The bytes that a client sends over a connection in memory, and the responses it reads from it.

use std::io;

use serde_json::Value;
use simulator::Protocol;
use testkit::requests::{Question, ask, path};
use testkit::{CLIENT_KEY, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fault::Fault;
use crate::pipe::Pipe;

/// The bytes of a request, with headers that must not be forwarded.
pub(crate) fn request(fault: &Fault) -> Vec<u8> {
    let (path, (kind, body)) = match fault.client {
        Protocol::Images => (
            fault.drawing.path(),
            fault
                .drawing
                .request(&fault.model, &fault.nonce(), fault.stream),
        ),
        client => (
            path(client),
            ("application/json", words(fault).to_string().into_bytes()),
        ),
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
    match fault.question {
        Question::Text => ask(fault.client, &fault.model, &fault.nonce(), fault.stream),
        question => question.body(fault.client, &fault.model, fault.stream),
    }
}

/// Reads until the response is complete, or `enough` bytes are there, or nothing more arrives.
pub(crate) async fn read(pipe: &mut Pipe, at_once: usize, enough: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    read_into(&mut bytes, pipe, at_once, enough).await;
    bytes
}

/// As [`read`], appending to the bytes that were read before.
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
    let is_near =
        bytes.ends_with(b"0\r\n\r\n") || bytes.ends_with(b"}") || bytes.ends_with(b"\r\n\r\n");
    is_near && Response::parse(bytes).is_some_and(|response| response.is_complete())
}

/// Writes in pieces of this size.
pub(crate) async fn write(pipe: &mut Pipe, bytes: &[u8], at_once: usize) -> io::Result<()> {
    for piece in bytes.chunks(at_once) {
        pipe.write_all(piece).await?;
    }
    Ok(())
}
