//! Reads requests from a socket.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use httparse::Status;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::clock;
use crate::request::Request;

/// Reads the next request, without its numbers. Returns `None` if the peer closes the connection
/// before its first byte.
///
/// `input` holds bytes that were read but not parsed yet.
///
/// # Errors
/// If the peer disconnects within a request, or sends an invalid one
/// ([`io::ErrorKind::InvalidData`]).
pub(crate) async fn read<S>(socket: &mut S, input: &mut BytesMut) -> io::Result<Option<Request>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = loop {
        if let Some(request) = head(input)? {
            break request;
        }
        if input.len() > MAX_HEAD {
            return Err(invalid("request head too long"));
        }
        if !read_more(socket, input).await? {
            return if input.is_empty() {
                Ok(None)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
    };
    if request
        .header("expect")
        .is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue"))
    {
        socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    request.body = if request.header("transfer-encoding").is_some() {
        chunks(socket, input).await?
    } else {
        let length = request
            .header("content-length")
            .map_or(Ok(0), str::parse)
            .map_err(invalid)?;
        exactly(length, socket, input).await?
    };
    request.at = clock::now();
    Ok(Some(request))
}

/// Reads more bytes. Returns false at the end of the stream.
pub(crate) async fn read_more(
    socket: &mut (impl AsyncRead + Unpin),
    input: &mut BytesMut,
) -> io::Result<bool> {
    input.reserve(READ_SIZE);
    Ok(socket.read_buf(input).await? > 0)
}

/// Parses and removes a head from the input, once it is complete.
fn head(input: &mut BytesMut) -> io::Result<Option<Request>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let Status::Complete(length) = head.parse(input).map_err(invalid)? else {
        return Ok(None);
    };
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let headers = head
        .headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), text(header.value)));
    let request = Request {
        number: 0,
        connection: 0,
        nth_on_connection: 0,
        method: head.method.unwrap_or_default().to_owned(),
        path: head.path.unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body: Bytes::new(),
        at: clock::now(),
    };
    input.advance(length);
    Ok(Some(request))
}

async fn chunks(socket: &mut (impl AsyncRead + Unpin), input: &mut BytesMut) -> io::Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        let line = line(socket, input).await?;
        let digits = line
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        let size = std::str::from_utf8(digits).map_err(invalid)?;
        let size = usize::from_str_radix(size, 16).map_err(invalid)?;
        if size == 0 {
            // Trailers.
            while !self::line(socket, input).await?.is_empty() {}
            return Ok(body.freeze());
        }
        if body.len().saturating_add(size) > MAX_BODY {
            return Err(invalid("request body too large"));
        }
        body.extend_from_slice(&exactly(size, socket, input).await?);
        if !self::line(socket, input).await?.is_empty() {
            return Err(invalid("chunk exceeds its size"));
        }
    }
}

async fn exactly(
    length: usize,
    socket: &mut (impl AsyncRead + Unpin),
    input: &mut BytesMut,
) -> io::Result<Bytes> {
    if length > MAX_BODY {
        return Err(invalid("request body too large"));
    }
    while input.len() < length {
        if !read_more(socket, input).await? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(input.split_to(length).freeze())
}

/// Reads a line, without its line ending.
async fn line(socket: &mut (impl AsyncRead + Unpin), input: &mut BytesMut) -> io::Result<Bytes> {
    loop {
        if let Some(end) = memchr::memchr(b'\n', input) {
            let line = input.split_to(end + 1).freeze();
            let line = line.slice(..end);
            return Ok(if line.ends_with(b"\r") {
                line.slice(..end - 1)
            } else {
                line
            });
        }
        if input.len() > MAX_HEAD || !read_more(socket, input).await? {
            return Err(invalid("unterminated line"));
        }
    }
}

fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Minimum buffer space for a read. Small, because thousands of connections may be open.
const READ_SIZE: usize = 4 << 10;

const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 128;
const MAX_BODY: usize = 256 << 20;
