//! A response from an upstream.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use coding::{Coding, Decoder};
use engine::EngineError;
use http::StatusCode;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::event_memory::Lease;
use crate::host::Host;
use crate::idle_timeout::IdleTimeout;
use crate::response_meta::ResponseMeta;
use crate::source::Source;

/// A response whose head was received.
#[derive(Debug)]
pub struct Incoming {
    /// The status. Redirects are not followed.
    pub status: StatusCode,
    /// True if the declared content type is `text/event-stream`. Servers do not always send the
    /// right one.
    pub is_event_stream: bool,
    /// True if the body has a content coding that is not supported, so that it cannot be read. Never
    /// true for a successful response: it would have been rejected.
    pub is_encoded: bool,
    /// `Retry-After` in seconds, clamped to 1 to 3600.
    pub retry_after: Option<u32>,
    /// The part of the head that is for the log and for the client.
    pub meta: ResponseMeta,
    /// The body.
    pub body: IncomingBody,
    /// `Retry-After` as it was sent.
    pub(crate) retry_delay: Option<Duration>,
}

/// The body of a response, read as it is polled, and decoded if it has a content coding.
///
/// It fails with `Timeout` when the next chunk, or of an event stream the next event or comment,
/// does not arrive within the idle timeout, and with `Truncated` when it ends too early or has
/// invalid framing. Dropped before its end, it closes the connection at once.
pub struct IncomingBody {
    /// `None` once the body has ended or failed.
    source: Option<Source>,
    /// The decoder of a body with a content coding, until its end.
    decoder: Option<Box<Decoder>>,
    host: Arc<Host>,
    idle_timeout: IdleTimeout,
    /// True if it is an event stream: only its reader knows if the upstream is alive.
    has_events: bool,
    /// The memory for the incomplete event.
    event: Lease,
    /// The number of bytes that may still be received.
    remaining: usize,
}

impl IncomingBody {
    /// Creates the body of a response to a request of this client.
    pub(crate) fn new(
        source: Source,
        host: Arc<Host>,
        client: Arc<str>,
        coding: Option<Coding>,
    ) -> Self {
        let idle_timeout = IdleTimeout::new(host.idle_timeout);
        let event = host.event_memory.lease(client);
        let is_end = source.is_end();
        let mut this = Self {
            source: Some(source),
            decoder: coding.map(|coding| Box::new(Decoder::new(coding, usize::MAX))),
            host,
            idle_timeout,
            has_events: false,
            event,
            remaining: usize::MAX,
        };
        if is_end {
            this.finish();
        }
        this
    }

    /// Turns it into the body of an event stream, whose reader calls [`IncomingBody::note_read`].
    pub fn with_events(self) -> Self {
        Self {
            has_events: true,
            ..self
        }
    }

    /// Notes how the reader of an event stream has read the last chunk. `is_alive` is true if the
    /// chunk completed an event or a comment, which restarts the idle timeout; `buffered` is the
    /// number of bytes of the incomplete event.
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] when there is no memory for an event of this size.
    pub fn note_read(&mut self, is_alive: bool, buffered: usize) -> Result<(), EngineError> {
        if is_alive {
            self.idle_timeout.reset();
        }
        self.event.resize(buffered)
    }

    /// Limits the body to `limit` bytes: beyond that it fails with `Upstream`.
    pub fn at_most(self, limit: usize) -> Self {
        Self {
            remaining: limit,
            ..self
        }
    }

    /// Buffers the complete body.
    ///
    /// # Errors
    /// When the body fails, and `Upstream` when it is larger than `limit` bytes.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, EngineError> {
        let too_large = || EngineError::Upstream(format!("response body exceeds {limit} bytes"));
        let announced = self.length().unwrap_or_default();
        if announced > limit as u64 {
            return Err(too_large());
        }
        let first = self.chunk().await?.unwrap_or_default();
        let mut length = first.len();
        let mut joined = BytesMut::new();
        loop {
            if length > limit {
                return Err(too_large());
            }
            let Some(chunk) = self.chunk().await? else {
                break;
            };
            if joined.is_empty() {
                joined.reserve((announced as usize).max(length + chunk.len()));
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&chunk);
            length += chunk.len();
        }
        // A body of a single chunk is not copied.
        Ok(if joined.is_empty() {
            first
        } else {
            joined.freeze()
        })
    }

    /// The number of bytes that are left to be read, if the head has declared it.
    pub fn length(&self) -> Option<u64> {
        match &self.source {
            _ if self.decoder.is_some() => None,
            Some(source) => source.length(),
            None => Some(0),
        }
    }

    /// Reads the next chunk. Returns `None` at the end.
    ///
    /// # Errors
    /// When the body fails.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EngineError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Discards the rest of a body after its relevant part was read. If the end is near, it is read
    /// in the background, so that the connection can be reused; otherwise the connection is closed.
    pub fn drain(mut self) {
        let mut left = MAX_DRAIN;
        // The end has usually been received already.
        let drained = self.poll_drain(&mut Context::from_waker(Waker::noop()), &mut left);
        if drained.is_pending()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(timeout(DRAIN_TIMEOUT, async move {
                poll_fn(|cx| self.poll_drain(cx, &mut left)).await;
            }));
        }
    }

    /// Discards chunks until the end, a failure, or more than `left` bytes.
    fn poll_drain(&mut self, cx: &mut Context<'_>, left: &mut usize) -> Poll<()> {
        while let Ok(Some(chunk)) = ready!(self.poll_chunk(cx)) {
            match left.checked_sub(chunk.len()) {
                Some(rest) => *left = rest,
                None => break,
            }
        }
        Poll::Ready(())
    }

    /// Polls for the next chunk, which is `None` at the end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, EngineError>> {
        let chunk = match self.decoder {
            None => ready!(self.poll_received(cx))?,
            Some(_) => ready!(self.poll_decoded(cx))?,
        };
        let length = chunk.as_ref().map_or(0, Bytes::len);
        match self.remaining.checked_sub(length) {
            Some(remaining) => self.remaining = remaining,
            None => {
                let error = "upstream stream exceeds the size limit";
                return self.fail(EngineError::Upstream(error.to_owned()));
            }
        }
        Poll::Ready(Ok(chunk))
    }

    /// Polls for the next piece of a body with a content coding. All that the chunks so far decode to
    /// is returned before the next one is received.
    fn poll_decoded(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, EngineError>> {
        while let Some(decoder) = &mut self.decoder {
            match decoder.next_piece() {
                Ok(None) => {}
                Ok(piece) => return Poll::Ready(Ok(piece)),
                Err(error) => {
                    return self.fail(EngineError::Upstream(format!("the response {error}")));
                }
            }
            let chunk = ready!(self.poll_received(cx))?;
            match (chunk, self.decoder.take()) {
                (Some(chunk), Some(mut decoder)) => {
                    decoder.push(chunk);
                    self.decoder = Some(decoder);
                }
                (None, Some(mut decoder)) => decoder
                    .finish()
                    .map_err(|error| EngineError::Truncated(format!("the response {error}")))?,
                (_, None) => break,
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Polls for the next chunk as it is received.
    fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, EngineError>> {
        let Some(source) = &mut self.source else {
            return Poll::Ready(Ok(None));
        };
        match source.poll(cx) {
            Poll::Ready(Ok(Some(chunk))) => {
                let is_end = source.is_end();
                if !self.has_events {
                    self.idle_timeout.reset();
                }
                if is_end {
                    self.finish();
                }
                Poll::Ready(Ok(Some(chunk)))
            }
            Poll::Ready(Err(error)) => self.fail(error),
            Poll::Ready(Ok(None)) => {
                self.finish();
                Poll::Ready(Ok(None))
            }
            Poll::Pending => {
                // The reader of an event stream counts what it has buffered itself.
                if let Source::Turn(turn) = source
                    && let Err(error) = self.event.resize(turn.unfinished())
                {
                    return self.fail(error);
                }
                ready!(self.idle_timeout.poll(source.timer(), cx));
                let error = "idle timeout while reading the response body";
                self.fail(EngineError::Unanswered(error.to_owned()))
            }
        }
    }

    /// Ends the body: returns the connection to the pool, which takes it if it can be reused, or the
    /// WebSocket to its client.
    fn finish(&mut self) {
        match self.source.take() {
            Some(Source::Http1(connection)) => self.host.pool.put(connection),
            Some(Source::Turn(turn)) => turn.release(),
            None => {}
        }
    }

    /// Fails the body: closes the connection.
    fn fail<T>(&mut self, error: EngineError) -> Poll<Result<T, EngineError>> {
        self.source = None;
        self.decoder = None;
        Poll::Ready(Err(error))
    }
}

impl std::fmt::Debug for IncomingBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncomingBody").finish_non_exhaustive()
    }
}

/// The maximum number of bytes that are discarded after the last relevant chunk.
const MAX_DRAIN: usize = 64 << 10;
/// The timeout for reading them.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);
