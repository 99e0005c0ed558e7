//! Compares this client with hyper's: the same bytes of a response, in any pieces, have the same
//! status, headers, body, failure and reuse.

mod responses;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Body as _;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use net::Connection;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::responses::response;
use super::head::MAX_HEAD;
use super::{Http1Connection, Unsent};
use crate::outgoing::Payload;

/// The state of the connection after the last byte of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Reset,
    Open,
}

/// The bytes that a host sends once it has received a request.
#[derive(Clone, Debug)]
struct Script {
    pieces: VecDeque<Vec<u8>>,
    end: End,
    is_asked: bool,
    is_pausing: bool,
}

impl Script {
    fn new(bytes: &[u8], sizes: &[usize], end: End) -> Self {
        let (mut rest, mut sizes) = (bytes, sizes.iter().cycle());
        let pieces = std::iter::from_fn(|| {
            let size = sizes
                .next()
                .map_or(rest.len(), |size| (*size).min(rest.len()));
            let (piece, left) = rest.split_at(size);
            rest = left;
            (!piece.is_empty()).then(|| piece.to_vec())
        });
        Self {
            pieces: pieces.collect(),
            end,
            is_asked: false,
            is_pausing: false,
        }
    }
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_pausing = !self.is_pausing;
        if !self.is_asked || self.is_pausing {
            return Poll::Pending;
        }
        match (self.pieces.pop_front(), self.end) {
            (Some(mut piece), _) => {
                let rest = piece.split_off(piece.len().min(buf.remaining()));
                buf.put_slice(&piece);
                if !rest.is_empty() {
                    self.pieces.push_front(rest);
                }
                Poll::Ready(Ok(()))
            }
            (None, End::Closed) => Poll::Ready(Ok(())),
            (None, End::Reset) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            (None, End::Open) => Poll::Pending,
        }
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_asked = true;
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Connection for Script {
    fn peer(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The response as a client has read it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    status: Option<u16>,
    headers: Vec<Vec<u8>>,
    body: Vec<u8>,
    /// `None` if it is still waited for.
    is_complete: Option<bool>,
    may_reuse: bool,
}

/// Polls as often as a client may need for all pieces.
fn poll_often<T>(pieces: usize, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    let mut cx = Context::from_waker(Waker::noop());
    (0..2 * pieces + 32).find_map(|_| match poll(&mut cx) {
        Poll::Ready(ready) => Some(ready),
        Poll::Pending => None,
    })
}

fn read_with_ours(script: Script) -> Read {
    let pieces = script.pieces.len();
    let mut read = Read::default();
    let mut connection = Http1Connection::new(Box::new(script), Duration::ZERO);
    let head = b"POST / HTTP/1.1\r\n\r\n".to_vec();
    let request = Unsent::new(head, &Payload::from(Bytes::new()));
    let sent = {
        let mut sending = pin!(connection.send(request, true, |status, headers| {
            let values = NAMES.iter().flat_map(|name| headers.all(name));
            (status.as_u16(), values.map(<[u8]>::to_vec).collect())
        }));
        poll_often(pieces, |cx| sending.as_mut().poll(cx))
    };
    match sent {
        None => return read,
        Some(Err(ended)) => {
            assert!(ended.was_written);
            read.is_complete = Some(false);
            return read;
        }
        Some(Ok((status, headers))) => {
            read.status = Some(status);
            read.headers = headers;
        }
    }
    while read.is_complete.is_none() {
        match poll_often(pieces, |cx| connection.poll_body(cx)) {
            None => return read,
            Some(Ok(Some(piece))) => read.body.extend_from_slice(&piece),
            Some(ended) => read.is_complete = Some(ended.is_ok()),
        }
    }
    read.may_reuse = (0..4).all(|_| connection.is_idle());
    read
}

fn read_with_hyper(script: Script) -> Read {
    let pieces = script.pieces.len();
    let mut read = Read::default();
    let mut builder = http1::Builder::new();
    builder.max_header_size(MAX_HEAD).max_buf_size(MAX_HEAD);
    let mut handshake = pin!(builder.handshake::<_, Full<Bytes>>(TokioIo::new(script)));
    let (mut sender, connection) = poll_often(0, |cx| handshake.as_mut().poll(cx))
        .unwrap()
        .unwrap();
    let mut connection = Some(Box::pin(connection));
    let mut drive = |cx: &mut Context<'_>| {
        let is_over =
            |running: &mut Pin<Box<http1::Connection<_, _>>>| running.as_mut().poll(cx).is_ready();
        if connection.as_mut().is_some_and(is_over) {
            connection = None;
        }
        connection.is_some()
    };
    let request = Request::post("/").body(Full::new(Bytes::new())).unwrap();
    let sent = {
        let mut sending = pin!(sender.try_send_request(request));
        poll_often(pieces, |cx| {
            drive(cx);
            sending.as_mut().poll(cx)
        })
    };
    let mut response = match sent {
        None => return read,
        Some(Err(mut unsent)) => {
            assert!(unsent.take_message().is_none());
            read.is_complete = Some(false);
            return read;
        }
        Some(Ok(response)) => response,
    };
    read.status = Some(response.status().as_u16());
    let headers = response.headers();
    let values = NAMES.iter().flat_map(|name| headers.get_all(*name));
    read.headers = values.map(|value| value.as_bytes().to_vec()).collect();
    let has_two_framings =
        headers.contains_key("content-length") && headers.contains_key("transfer-encoding");
    let mut body = Pin::new(response.body_mut());
    while read.is_complete.is_none() {
        if body.is_end_stream() {
            read.is_complete = Some(true);
            break;
        }
        let frame = poll_often(pieces, |cx| {
            drive(cx);
            body.as_mut().poll_frame(cx)
        });
        match frame {
            None => return read,
            Some(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap_or_default();
                read.body.extend_from_slice(&data);
            }
            Some(ended) => read.is_complete = Some(ended.is_none()),
        }
    }
    let mut cx = Context::from_waker(Waker::noop());
    let is_open = (0..8).all(|_| drive(&mut cx));
    read.may_reuse = is_open && sender.is_ready() && !has_two_framings;
    read
}

fn end() -> impl Strategy<Value = End> {
    select(vec![End::Closed, End::Open, End::Reset])
}

/// A value with bytes outside of ASCII has no options, also where one of its elements is an option.
#[test]
fn values_outside_of_ascii_have_no_options() {
    for (header, may_reuse) in [
        ("connection: close", false),
        ("connection: \u{e9}, close", true),
    ] {
        let response = format!("HTTP/1.1 200 OK\r\n{header}\r\ncontent-length: 0\r\n\r\n");
        let script = Script::new(response.as_bytes(), &[], End::Open);
        let ours = read_with_ours(script.clone());
        assert_eq!(ours.may_reuse, may_reuse, "{header}");
        assert_eq!(ours, read_with_hyper(script), "{header}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn both_clients_read_the_same(
        response in response(),
        sizes in vec(1..40usize, 0..4),
        end in end(),
    ) {
        let script = Script::new(&response, &sizes, end);
        let shown = response.escape_ascii().to_string();
        prop_assert_eq!(read_with_ours(script.clone()), read_with_hyper(script), "{}", shown);
    }

    /// However the bytes are cut, they are the same response. Only how soon a violation is noticed
    /// may differ, so that the connection ends here.
    #[test]
    fn pieces_make_no_difference(
        response in response(),
        sizes in vec(1..40usize, 1..4),
        is_reset: bool,
    ) {
        let end = if is_reset { End::Reset } else { End::Closed };
        let whole = read_with_ours(Script::new(&response, &[], end));
        prop_assert_eq!(read_with_ours(Script::new(&response, &sizes, end)), whole);
    }
}

/// Both clients have the same limits for the size of a head, the number of its headers, chunk
/// extensions and trailers.
#[test]
fn both_clients_have_the_same_limits() {
    let head = |headers: String| format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n");
    let many = |count: usize| "x: y\r\n".repeat(count);
    let long = |length: usize| format!("x: {}\r\n", "y".repeat(length));
    let around = MAX_HEAD - head(long(0)).len();
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let extension = |length: usize| format!("{chunked}1;{}\r\na\r\n0\r\n\r\n", "x".repeat(length));
    let trailers = |trailers: String| format!("{chunked}0\r\n{trailers}\r\n");
    for (response, is_accepted) in [
        (head(many(99)), true),
        (head(many(100)), false),
        (head(long(around)), true),
        (head(long(around + 1)), false),
        (extension((16 << 10) - 1), true),
        (extension(16 << 10), false),
        (trailers(many(100)), true),
        (trailers(many(101)), false),
        (trailers(long(60 << 10)), true),
        (trailers(long(64 << 10)), false),
    ] {
        for sizes in [&[][..], &[1000], &[7777]] {
            let script = Script::new(response.as_bytes(), sizes, End::Open);
            let (ours, hyper) = (read_with_ours(script.clone()), read_with_hyper(script));
            assert_eq!(ours.is_complete, Some(is_accepted), "{}", response.len());
            assert_eq!(ours, hyper, "{}", response.len());
        }
    }
}

/// A long body is read into memory that is used again, and a byte after its end is still noticed.
#[test]
fn a_long_body_is_the_same() {
    let body: String = (0..70_000).map(|at| format!("{at:x},")).collect();
    for (length, stray) in [(body.len(), ""), (body.len(), "x"), (body.len() + 1, "")] {
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}{stray}");
        for (sizes, end) in [(&[][..], End::Open), (&[200_000], End::Closed)] {
            let script = Script::new(response.as_bytes(), sizes, end);
            let (ours, hyper) = (read_with_ours(script.clone()), read_with_hyper(script));
            assert!(ours == hyper, "{length} {stray} {end:?}");
            assert!(ours.body == body.as_bytes());
        }
    }
}

/// The headers that are compared.
const NAMES: [&str; 5] = [
    "content-type",
    "content-encoding",
    "retry-after",
    "x-request-id",
    "x",
];
