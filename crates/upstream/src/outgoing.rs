//! What is asked.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};

/// A request: always a POST. It can be sent any number of times.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// What is appended to the base URL, from its slash on: `/responses`.
    pub path: &'static str,
    /// The type of the body.
    pub content_type: HeaderValue,
    /// Headers of this request alone. Those that the gateway writes itself are left out, whoever put them here.
    pub headers: HeaderMap,
    /// The body.
    pub body: Payload,
    /// Whether an event stream is wanted for an answer, rather than JSON.
    pub accept_stream: bool,
}

/// The body of a request: bytes that are shared, not copied, however often they are sent.
#[derive(Clone)]
pub struct Payload(Kind);

#[derive(Clone)]
enum Kind {
    Whole(Bytes),
    Pieces(Arc<[Bytes]>),
}

impl Payload {
    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Whole(bytes) => bytes.len(),
            Kind::Pieces(pieces) => pieces.iter().map(Bytes::len).sum(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn piece(&self, at: usize) -> Option<&Bytes> {
        match &self.0 {
            Kind::Whole(bytes) => (at == 0).then_some(bytes),
            Kind::Pieces(pieces) => pieces.get(at),
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole(bytes))
    }
}

/// Pieces that are one body, one after the other.
impl From<Vec<Bytes>> for Payload {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self(Kind::Pieces(pieces.into()))
    }
}

/// How long it is, and nothing that is in it.
impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}

/// One sending of a payload.
pub(crate) struct Sending {
    payload: Payload,
    next: usize,
    left: u64,
}

impl Sending {
    pub(crate) fn new(payload: &Payload) -> Self {
        Self { payload: payload.clone(), next: 0, left: payload.len() as u64 }
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(piece) = self.payload.piece(self.next).cloned() else { return Poll::Ready(None) };
        self.next += 1;
        self.left -= piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    /// Exact, so that it is sent with its `Content-Length`.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
