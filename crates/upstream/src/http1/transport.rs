//! Reads and writes the bytes of a connection.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{BufMut, Bytes, BytesMut};
use net::Connection;
use tokio::io::{AsyncReadExt as _, ReadBuf};

use crate::http1::body::{Body, Framing};
use crate::http1::error::{Http1Error, Invalid};
use crate::http1::scratch;
use crate::http1::unsent::Unsent;

/// The bytes of a connection in both directions, and the facts about them that outlive a response.
pub(crate) struct Transport {
    io: Box<dyn Connection>,
    /// The rest of the request, until it was written.
    pub(crate) unsent: Option<Unsent>,
    /// The memory for the pieces of a long body: it is usually free again, and still in the cache
    /// of the processor, when the next one is read.
    piece: BytesMut,
    /// True if at least one byte was received since the last request was sent.
    pub(crate) has_received: bool,
    /// False once anything that was read or written forbids another request.
    pub(crate) may_reuse: bool,
}

impl Transport {
    pub(crate) fn new(io: Box<dyn Connection>) -> Self {
        Self {
            io,
            unsent: None,
            piece: BytesMut::new(),
            has_received: false,
            may_reuse: true,
        }
    }

    /// Reads once. Returns the number of bytes, which is 0 at the end.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<Result<usize, Http1Error>> {
        let mut buffer = ReadBuf::new(bytes);
        ready!(Pin::new(&mut *self.io).poll_read(cx, &mut buffer)).map_err(Http1Error::Read)?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Writes the rest of the request. After an error, nothing more is written.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Http1Error>> {
        let Some(unsent) = &mut self.unsent else {
            return Poll::Ready(Ok(()));
        };
        let written = ready!(unsent.poll_write(cx, &mut *self.io));
        self.unsent = None;
        self.may_reuse &= written.is_ok();
        Poll::Ready(written.map_err(Http1Error::Write))
    }

    /// Polls for the next piece of the body, which is `None` at the end. All data of one read is
    /// one piece.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Body,
    ) -> Poll<Result<Option<Bytes>, Http1Error>> {
        if !body.first.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut body.first))));
        }
        if let Some(violation) = body.violation {
            return Poll::Ready(Err(violation.into()));
        }
        if self.unsent.is_some() {
            // The response to a request that could not be written completely is as good as any.
            let _ = self.poll_write(cx);
        }
        loop {
            if body.framing.is_end() {
                return Poll::Ready(Ok(None));
            }
            let piece = match body.framing {
                Framing::Length(left) if left > LONG => ready!(self.poll_long(cx, body, left))?,
                _ => ready!(self.poll_short(cx, body))?,
            };
            match (piece.is_empty(), body.violation) {
                (true, None) => {}
                (true, Some(violation)) => return Poll::Ready(Err(violation.into())),
                (false, _) => return Poll::Ready(Ok(Some(piece))),
            }
        }
    }

    /// Reads and decodes once. The piece is empty if nothing of the body was received.
    fn poll_short(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Body,
    ) -> Poll<Result<Bytes, Http1Error>> {
        scratch::with(|scratch| {
            let received = ready!(self.poll_read(cx, scratch))?;
            if received == 0 {
                self.close(body)?;
                return Poll::Ready(Ok(Bytes::new()));
            }
            Poll::Ready(Ok(self.decode(body, &mut scratch[..received])))
        })
    }

    /// Reads a piece of a long body into memory that is used again.
    fn poll_long(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Body,
        left: u64,
    ) -> Poll<Result<Bytes, Http1Error>> {
        let piece = &mut self.piece;
        if piece.capacity() < PIECE / 2 && !piece.try_reclaim(PIECE) {
            *piece = BytesMut::with_capacity(PIECE);
        }
        let limit = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        let mut limited = (&mut *piece).limit(limit);
        let read = ready!(pin!(self.io.read_buf(&mut limited)).poll(cx));
        let received = read.map_err(Http1Error::Read)?;
        if received == 0 {
            self.close(body)?;
            return Poll::Ready(Ok(Bytes::new()));
        }
        body.framing = Framing::Length(left - received as u64);
        let received = piece.split().freeze();
        if body.framing.is_end() {
            self.piece = BytesMut::new();
        }
        Poll::Ready(Ok(received))
    }

    /// Decodes received bytes of the body. Bytes that follow its end are no response to a later
    /// request.
    pub(crate) fn decode(&mut self, body: &mut Body, bytes: &mut [u8]) -> Bytes {
        let decoded = body.framing.decode(bytes);
        self.may_reuse &= decoded.used == bytes.len();
        body.violation = decoded.violation;
        Bytes::copy_from_slice(&bytes[decoded.data])
    }

    /// Notes that the host has closed the connection.
    fn close(&mut self, body: &mut Body) -> Result<(), Invalid> {
        self.may_reuse = false;
        body.framing.close()
    }

    /// Returns an error if the host has sent bytes without a request, or the connection has ended
    /// or failed.
    pub(crate) fn interruption(&mut self) -> Option<Http1Error> {
        let mut cx = Context::from_waker(Waker::noop());
        match self.poll_read(&mut cx, &mut [0]) {
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

/// The length above which the rest of a body is long, in bytes.
const LONG: u64 = 64 << 10;
/// The size of the pieces of a long body, in bytes.
const PIECE: usize = 400 << 10;
