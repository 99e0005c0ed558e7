//! What is answered.

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

/// An answer, of which the head is there.
#[derive(Debug)]
pub struct Incoming {
    /// What became of the request. Redirects are not followed.
    pub status: StatusCode,
    /// What the body is said to be.
    pub kind: MediaKind,
    /// Seconds to wait, as the upstream advises, within 1 to 30.
    pub retry_after: Option<u32>,
    /// The rest.
    pub body: IncomingBody,
}

/// What a body is said to be. Servers are not always right about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// `application/json` and its kin.
    Json,
    /// `text/event-stream`.
    EventStream,
    /// Everything else, and nothing.
    Other,
}

/// The body of an answer, read as it is polled.
///
/// It fails with `Timeout` when the next piece does not come in time, and with `Truncated` when it ends too early or
/// cannot be read. Dropped before its end, it closes the connection at once.
pub struct IncomingBody {
    body: hyper::body::Incoming,
    /// None when the end was seen.
    link: Option<Http1Connection>,
    may_keep: bool,
    leave: HostAttempt,
    patience: IdleTimeout,
    /// How many bytes may still come.
    left: usize,
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
    pub(crate) fn new(body: hyper::body::Incoming, link: Http1Connection, may_keep: bool, leave: HostAttempt) -> Self {
        let patience = IdleTimeout::new(leave.host().idle());
        let mut this = Self { body, link: Some(link), may_keep, leave, patience, left: usize::MAX };
        if this.body.is_end_stream() {
            this.finish();
        }
        this
    }

    /// The same, failing with `Upstream` once more than `limit` bytes have come.
    pub(crate) fn at_most(self, limit: usize) -> Self {
        Self { left: limit, ..self }
    }

    /// The whole of it, if it has at most `limit` bytes.
    ///
    /// # Errors
    /// As the body fails, and `Upstream` when it is larger.
    pub async fn collect(self, limit: usize) -> Result<Bytes, EngineError> {
        let announced = self.size_hint().lower();
        let mut body = pin!(self);
        if announced > limit as u64 {
            return Err(too_large(limit));
        }
        // A body that comes in one piece is not copied.
        let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
        let mut whole = Whole::One(first);
        loop {
            if whole.len() > limit {
                return Err(too_large(limit));
            }
            match next(&mut body).await? {
                Some(piece) => whole.push(piece, announced as usize),
                None => return Ok(whole.into_bytes()),
            }
        }
    }

    /// Gives up what is left, when all that matters was read: the end is read in the background, if it is near, so
    /// that the connection can be used again; else the connection is closed.
    pub fn drain(mut self) {
        self.leave.settle(Outcome::Success);
        let mut left = DRAIN;
        // Most often the end is there already.
        let at_once = self.poll_drain(&mut Context::from_waker(Waker::noop()), &mut left);
        if at_once.is_pending()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(timeout(DRAIN_TIME, async move {
                std::future::poll_fn(|cx| self.poll_drain(cx, &mut left)).await;
            }));
        }
    }

    /// Reads on until the end, a failure, or more than `left`.
    fn poll_drain(&mut self, cx: &mut Context<'_>, left: &mut usize) -> Poll<()> {
        while let Some(Ok(piece)) = ready!(self.poll_piece(cx)) {
            match left.checked_sub(piece.len()) {
                Some(rest) => *left = rest,
                None => break,
            }
        }
        Poll::Ready(())
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, EngineError>>> {
        loop {
            let Some(link) = &mut self.link else { return Poll::Ready(None) };
            let body = &mut self.body;
            match link.poll(cx, |cx| Pin::new(&mut *body).poll_frame(cx)) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.patience.renew();
                    // Trailers are nobody's business.
                    let Ok(piece) = frame.into_data() else { continue };
                    match self.left.checked_sub(piece.len()) {
                        Some(left) => self.left = left,
                        None => return Poll::Ready(Some(Err(self.fail(endless())))),
                    }
                    if self.body.is_end_stream() {
                        self.finish();
                    }
                    return Poll::Ready(Some(Ok(piece)));
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(self.fail(EngineError::Truncated(describe(&error))))));
                }
                Poll::Ready(None) => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    ready!(self.patience.poll(cx));
                    let late = EngineError::Timeout("no next piece of an answer".to_owned());
                    return Poll::Ready(Some(Err(self.fail(late))));
                }
            }
        }
    }

    /// The end was read: the connection is free for the next request.
    fn finish(&mut self) {
        self.leave.settle(Outcome::Success);
        if let Some(link) = self.link.take()
            && self.may_keep
        {
            self.leave.host().keep(link);
        }
    }

    fn fail(&mut self, error: EngineError) -> EngineError {
        self.leave.settle(Outcome::Failure);
        self.link = None;
        error
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = EngineError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, EngineError>>> {
        self.get_mut().poll_piece(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.link.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.link.is_none() { SizeHint::with_exact(0) } else { self.body.size_hint() }
    }
}

impl std::fmt::Debug for IncomingBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncomingBody").finish_non_exhaustive()
    }
}

/// A body that grows.
enum Whole {
    One(Bytes),
    Many(BytesMut),
}

impl Whole {
    fn len(&self) -> usize {
        match self {
            Self::One(piece) => piece.len(),
            Self::Many(pieces) => pieces.len(),
        }
    }

    fn push(&mut self, piece: Bytes, announced: usize) {
        if let Self::One(first) = self {
            let mut pieces = BytesMut::with_capacity(announced.max(first.len() + piece.len()));
            pieces.extend_from_slice(first);
            *self = Self::Many(pieces);
        }
        if let Self::Many(pieces) = self {
            pieces.extend_from_slice(&piece);
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::One(piece) => piece,
            Self::Many(pieces) => pieces.freeze(),
        }
    }
}

async fn next(body: &mut Pin<&mut IncomingBody>) -> Result<Option<Bytes>, EngineError> {
    std::future::poll_fn(|cx| body.poll_piece(cx)).await.transpose()
}

fn too_large(limit: usize) -> EngineError {
    EngineError::Upstream(format!("its answer is larger than {limit} bytes"))
}

fn endless() -> EngineError {
    EngineError::Upstream("its stream is longer than is taken".to_owned())
}

/// So much is read on after the last piece that matters, in bytes.
const DRAIN: usize = 64 << 10;
/// For so long.
const DRAIN_TIME: Duration = Duration::from_millis(50);
