//! A response from an upstream.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use engine::EngineError;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::breaker::Outcome;
use crate::host_attempt::HostAttempt;
use crate::http1::{Http1Connection, describe};
use crate::idle_timeout::IdleTimeout;

/// A response whose head was received.
#[derive(Debug)]
pub struct Incoming {
    /// The status. Redirects are not followed.
    pub status: StatusCode,
    /// The declared content type.
    pub kind: MediaKind,
    /// `Retry-After` in seconds, clamped to 1 to 30.
    pub retry_after: Option<u32>,
    /// The body.
    pub body: IncomingBody,
}

/// The declared content type of a body. Servers do not always send the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// `application/json`, or any type with the suffix `+json`.
    Json,
    /// `text/event-stream`.
    EventStream,
    /// Any other type, or none.
    Other,
}

/// The body of a response, read as it is polled.
///
/// It fails with `Timeout` when the next chunk does not arrive within the idle timeout, and with `Truncated` when it
/// ends too early or has invalid framing. Dropped before its end, it closes the connection at once.
pub struct IncomingBody {
    body: hyper::body::Incoming,
    /// `None` once the body has ended or failed.
    connection: Option<Http1Connection>,
    may_reuse: bool,
    attempt: HostAttempt,
    idle_timeout: IdleTimeout,
    /// The number of bytes that may still be received.
    remaining: usize,
}

impl MediaKind {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "text/event-stream" => Self::EventStream,
            "application/json" => Self::Json,
            other if other.ends_with("+json") => Self::Json,
            _ => Self::Other,
        }
    }
}

impl IncomingBody {
    pub(crate) fn new(
        body: hyper::body::Incoming,
        connection: Http1Connection,
        may_reuse: bool,
        attempt: HostAttempt,
    ) -> Self {
        let idle_timeout = IdleTimeout::new(attempt.host().idle_timeout());
        let connection = Some(connection);
        let mut this = Self { body, connection, may_reuse, attempt, idle_timeout, remaining: usize::MAX };
        if this.body.is_end_stream() {
            this.finish();
        }
        this
    }

    /// Limits the body to `limit` bytes: beyond that it fails with `Upstream`.
    pub(crate) fn at_most(self, limit: usize) -> Self {
        Self { remaining: limit, ..self }
    }

    /// Buffers the complete body.
    ///
    /// # Errors
    /// When the body fails, and `Upstream` when it is larger than `limit` bytes.
    pub async fn collect(self, limit: usize) -> Result<Bytes, EngineError> {
        let announced = self.size_hint().lower();
        let mut body = pin!(self);
        if announced > limit as u64 {
            return Err(too_large(limit));
        }
        // A body of a single chunk is not copied.
        let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
        let mut collected = Collected::One(first);
        loop {
            if collected.len() > limit {
                return Err(too_large(limit));
            }
            match next(&mut body).await? {
                Some(chunk) => collected.push(chunk, announced as usize),
                None => return Ok(collected.into_bytes()),
            }
        }
    }

    /// Discards the rest of a body of which everything relevant was read. If the end is near, it is read in the
    /// background, so that the connection can be reused; otherwise the connection is closed.
    pub fn drain(mut self) {
        self.attempt.settle(Outcome::Success);
        let mut left = MAX_DRAIN;
        // The end has usually been received already.
        let drained = self.poll_drain(&mut Context::from_waker(Waker::noop()), &mut left);
        if drained.is_pending()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(timeout(DRAIN_TIMEOUT, async move {
                std::future::poll_fn(|cx| self.poll_drain(cx, &mut left)).await;
            }));
        }
    }

    /// Discards chunks until the end, a failure, or more than `left` bytes.
    fn poll_drain(&mut self, cx: &mut Context<'_>, left: &mut usize) -> Poll<()> {
        while let Some(Ok(chunk)) = ready!(self.poll_chunk(cx)) {
            match left.checked_sub(chunk.len()) {
                Some(rest) => *left = rest,
                None => break,
            }
        }
        Poll::Ready(())
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, EngineError>>> {
        loop {
            let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
            let body = &mut self.body;
            match connection.poll(cx, |cx| Pin::new(&mut *body).poll_frame(cx)) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.idle_timeout.reset();
                    // Trailers are ignored.
                    let Ok(chunk) = frame.into_data() else { continue };
                    match self.remaining.checked_sub(chunk.len()) {
                        Some(remaining) => self.remaining = remaining,
                        None => return Poll::Ready(Some(Err(self.fail(stream_too_large())))),
                    }
                    if self.body.is_end_stream() {
                        self.finish();
                    }
                    return Poll::Ready(Some(Ok(chunk)));
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(self.fail(EngineError::Truncated(describe(&error))))));
                }
                Poll::Ready(None) => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    ready!(self.idle_timeout.poll(cx));
                    let timeout = EngineError::Timeout("idle timeout while reading the response body".to_owned());
                    return Poll::Ready(Some(Err(self.fail(timeout))));
                }
            }
        }
    }

    /// Ends the body: settles the attempt and returns the connection to the pool.
    fn finish(&mut self) {
        self.attempt.settle(Outcome::Success);
        if let Some(connection) = self.connection.take()
            && self.may_reuse
        {
            self.attempt.host().release(connection);
        }
    }

    /// Fails the body: settles the attempt and closes the connection.
    fn fail(&mut self, error: EngineError) -> EngineError {
        self.attempt.settle(Outcome::Failure);
        self.connection = None;
        error
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = EngineError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, EngineError>>> {
        self.get_mut().poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.connection.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.connection.is_none() { SizeHint::with_exact(0) } else { self.body.size_hint() }
    }
}

impl std::fmt::Debug for IncomingBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncomingBody").finish_non_exhaustive()
    }
}

/// The received part of a body that is being buffered.
enum Collected {
    One(Bytes),
    Many(BytesMut),
}

impl Collected {
    fn len(&self) -> usize {
        match self {
            Self::One(chunk) => chunk.len(),
            Self::Many(buffer) => buffer.len(),
        }
    }

    fn push(&mut self, chunk: Bytes, announced: usize) {
        if let Self::One(first) = self {
            let mut buffer = BytesMut::with_capacity(announced.max(first.len() + chunk.len()));
            buffer.extend_from_slice(first);
            *self = Self::Many(buffer);
        }
        if let Self::Many(buffer) = self {
            buffer.extend_from_slice(&chunk);
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::One(chunk) => chunk,
            Self::Many(buffer) => buffer.freeze(),
        }
    }
}

async fn next(body: &mut Pin<&mut IncomingBody>) -> Result<Option<Bytes>, EngineError> {
    std::future::poll_fn(|cx| body.poll_chunk(cx)).await.transpose()
}

fn too_large(limit: usize) -> EngineError {
    EngineError::Upstream(format!("response body exceeds {limit} bytes"))
}

fn stream_too_large() -> EngineError {
    EngineError::Upstream("upstream stream exceeds the size limit".to_owned())
}

/// The maximum number of bytes that are discarded after the last relevant chunk.
const MAX_DRAIN: usize = 64 << 10;
/// The timeout for reading them.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);
