//! One HTTP/1.1 connection. The caller that sends or reads drives it: there is no separate task, so
//! dropping it closes it. While it waits, it holds no memory for reading or writing.

pub(crate) mod body;
pub(crate) mod chunked;
mod decoded;
pub(crate) mod error;
pub(crate) mod head;
mod scratch;
pub(crate) mod unsent;

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use net::{Connection, LazyTimer};
use tokio::io::{AsyncReadExt as _, ReadBuf};

use crate::http1::body::Framing;
use crate::http1::error::{Http1Error, Invalid};
use crate::http1::head::{Headers, Parsed};
use crate::http1::unsent::Unsent;

pub(crate) struct Http1Connection {
    io: Box<dyn Connection>,
    /// The rest of the request, until it was written.
    unsent: Option<Unsent>,
    /// The bytes of an incomplete head.
    head: Vec<u8>,
    /// The rest of the body.
    body: Framing,
    /// The part of the body that was received with the head.
    first: Bytes,
    /// The violation that follows the received part of the body.
    violation: Option<Invalid>,
    /// The memory for the pieces of a long body: it is usually free again, and still in the cache of
    /// the processor, when the next one is read.
    piece: BytesMut,
    has_received: bool,
    may_reuse: bool,
    connect_time: Duration,
    /// The timer for all waits of its requests and responses.
    pub(crate) timer: LazyTimer,
}

/// A connection that ended before the head of a response.
pub(crate) struct ConnectionEnded {
    pub(crate) error: Http1Error,
    /// True if the host may have received a part of the request.
    pub(crate) was_written: bool,
}

impl Http1Connection {
    /// Boxed, because it is passed on with every request.
    pub(crate) fn new(io: Box<dyn Connection>, connect_time: Duration) -> Box<Self> {
        Box::new(Self {
            io,
            unsent: None,
            head: Vec::new(),
            body: Framing::Length(0),
            first: Bytes::new(),
            violation: None,
            piece: BytesMut::new(),
            has_received: false,
            may_reuse: true,
            connect_time,
            timer: LazyTimer::default(),
        })
    }

    /// Sends a request, reads the head of its response, and returns the `facts` about the head.
    /// `has_body` is false for a `HEAD` request.
    pub(crate) async fn send<T>(
        &mut self,
        request: Unsent,
        has_body: bool,
        facts: impl Fn(StatusCode, Headers<'_>) -> T,
    ) -> Result<T, ConnectionEnded> {
        self.has_received = false;
        if let Some(error) = self.interruption() {
            return Err(ConnectionEnded {
                error,
                was_written: false,
            });
        }
        self.unsent = Some(request);
        std::future::poll_fn(|cx| self.poll_head(cx, has_body, &facts))
            .await
            .map_err(|error| ConnectionEnded {
                error,
                was_written: true,
            })
    }

    /// Returns true if at least one byte was received since the last request was sent.
    pub(crate) fn has_received(&self) -> bool {
        self.has_received
    }

    /// Returns the time that connecting has taken, with DNS and TLS.
    pub(crate) fn connect_time(&self) -> Duration {
        self.connect_time
    }

    /// Returns true if another request can be sent: the last response was read to its end, no byte
    /// came after it, and the host has not closed the connection.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.may_reuse && self.unsent.is_none() && self.is_end() && self.interruption().is_none()
    }

    /// Returns true once the body was returned completely.
    pub(crate) fn is_end(&self) -> bool {
        self.body.is_end() && self.first.is_empty() && self.violation.is_none()
    }

    /// The number of bytes of the body that are left to be returned, if the head has declared it.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.body {
            Framing::Length(left) => Some(left + self.first.len() as u64),
            Framing::Chunked(_) | Framing::UntilClose => None,
        }
    }

    /// Polls for the next piece of the body, which is `None` at the end. All data of one read is
    /// one piece.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Http1Error>> {
        if !self.first.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.first))));
        }
        if let Some(violation) = self.violation {
            return Poll::Ready(Err(violation.into()));
        }
        // The response to a request that could not be written completely is as good as any.
        let _ = self.poll_write(cx);
        loop {
            if self.body.is_end() {
                return Poll::Ready(Ok(None));
            }
            let piece = match self.body {
                Framing::Length(left) if left > LONG => ready!(self.poll_long(cx, left))?,
                _ => ready!(self.poll_short(cx))?,
            };
            match (piece.is_empty(), self.violation) {
                (true, None) => {}
                (true, Some(violation)) => return Poll::Ready(Err(violation.into())),
                (false, _) => return Poll::Ready(Ok(Some(piece))),
            }
        }
    }

    /// Reads and decodes once. The piece is empty if nothing of the body was received.
    fn poll_short(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Http1Error>> {
        scratch::with(|scratch| {
            let received = ready!(poll_read(&mut *self.io, cx, scratch))?;
            if received == 0 {
                self.close()?;
                return Poll::Ready(Ok(Bytes::new()));
            }
            Poll::Ready(Ok(self.decode(&mut scratch[..received])))
        })
    }

    /// Reads a piece of a long body into memory that is used again.
    fn poll_long(&mut self, cx: &mut Context<'_>, left: u64) -> Poll<Result<Bytes, Http1Error>> {
        let piece = &mut self.piece;
        if piece.capacity() < PIECE / 2 && !piece.try_reclaim(PIECE) {
            *piece = BytesMut::with_capacity(PIECE);
        }
        let limit = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        let mut limited = (&mut *piece).limit(limit);
        let read = ready!(pin!(self.io.read_buf(&mut limited)).poll(cx));
        let received = read.map_err(Http1Error::Read)?;
        if received == 0 {
            self.close()?;
            return Poll::Ready(Ok(Bytes::new()));
        }
        self.body = Framing::Length(left - received as u64);
        let received = piece.split().freeze();
        if self.body.is_end() {
            self.piece = BytesMut::new();
        }
        Poll::Ready(Ok(received))
    }

    /// Writes the rest of the request, and reads until the head of the response is complete: a host
    /// may respond before it has received all of the request.
    fn poll_head<T>(
        &mut self,
        cx: &mut Context<'_>,
        has_body: bool,
        facts: &impl Fn(StatusCode, Headers<'_>) -> T,
    ) -> Poll<Result<T, Http1Error>> {
        let written = self.poll_write(cx);
        let head = scratch::with(|scratch| self.poll_read_head(cx, scratch, has_body, facts));
        match (written, head) {
            (_, Poll::Ready(Ok(head))) => Poll::Ready(Ok(head)),
            // A host that has closed the connection may have responded before.
            (Poll::Ready(Err(error)), _) => Poll::Ready(Err(error)),
            (_, head) => head,
        }
    }

    fn poll_read_head<T>(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        has_body: bool,
        facts: &impl Fn(StatusCode, Headers<'_>) -> T,
    ) -> Poll<Result<T, Http1Error>> {
        loop {
            let received = ready!(poll_read(&mut *self.io, cx, scratch))?;
            if received == 0 {
                return Poll::Ready(Err(Http1Error::Incomplete));
            }
            self.has_received = true;
            let received = &mut scratch[..received];
            let before = self.head.len();
            let taken = if before == 0 {
                self.take_head(received, has_body, facts)?
            } else {
                self.head.extend_from_slice(received);
                if self.head.len() < head::MAX_HEAD && !head::may_be_complete(&self.head, before) {
                    continue;
                }
                let mut head = std::mem::take(&mut self.head);
                self.take_head(&mut head, has_body, facts)?
            };
            if let Some(facts) = taken {
                return Poll::Ready(Ok(facts));
            }
        }
    }

    /// Takes a head, and the part of the body that follows it. Returns `None` if it is incomplete.
    fn take_head<T>(
        &mut self,
        bytes: &mut [u8],
        has_body: bool,
        facts: &impl Fn(StatusCode, Headers<'_>) -> T,
    ) -> Result<Option<T>, Invalid> {
        let head = match head::parse(bytes, has_body, facts)? {
            Parsed::Complete(head) => head,
            Parsed::Incomplete { skipped } => {
                self.head = bytes[skipped..].to_vec();
                return Ok(None);
            }
        };
        self.body = head.framing;
        self.may_reuse &= head.may_reuse;
        self.first = self.decode(&mut bytes[head.length..]);
        Ok(Some(head.facts))
    }

    /// Decodes received bytes of the body. Bytes that follow its end are no response to a later
    /// request.
    fn decode(&mut self, bytes: &mut [u8]) -> Bytes {
        let decoded = self.body.decode(bytes);
        self.may_reuse &= decoded.used == bytes.len();
        self.violation = decoded.violation;
        Bytes::copy_from_slice(&bytes[decoded.data])
    }

    /// Notes that the host has closed the connection.
    fn close(&mut self) -> Result<(), Invalid> {
        self.may_reuse = false;
        self.body.close()
    }

    /// Writes the rest of the request. After an error, nothing more is written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Http1Error>> {
        let Some(unsent) = &mut self.unsent else {
            return Poll::Ready(Ok(()));
        };
        let written = ready!(unsent.poll_write(cx, &mut *self.io));
        self.unsent = None;
        self.may_reuse &= written.is_ok();
        Poll::Ready(written.map_err(Http1Error::Write))
    }

    /// Returns an error if the host has sent bytes without a request, or the connection has ended
    /// or failed.
    fn interruption(&mut self) -> Option<Http1Error> {
        let mut cx = Context::from_waker(Waker::noop());
        match poll_read(&mut *self.io, &mut cx, &mut [0]) {
            Poll::Pending => None,
            Poll::Ready(Ok(0)) => Some(Http1Error::Closed),
            Poll::Ready(Ok(_)) => {
                self.has_received = true;
                Some(Http1Error::Unexpected)
            }
            Poll::Ready(Err(error)) => Some(error),
        }
    }
}

/// Reads once. Returns the number of bytes, which is 0 at the end.
fn poll_read(
    io: &mut dyn Connection,
    cx: &mut Context<'_>,
    bytes: &mut [u8],
) -> Poll<Result<usize, Http1Error>> {
    let mut buffer = ReadBuf::new(bytes);
    ready!(Pin::new(io).poll_read(cx, &mut buffer)).map_err(Http1Error::Read)?;
    Poll::Ready(Ok(buffer.filled().len()))
}

/// The length above which the rest of a body is long, in bytes.
const LONG: u64 = 64 << 10;
/// The size of the pieces of a long body, in bytes.
const PIECE: usize = 400 << 10;
