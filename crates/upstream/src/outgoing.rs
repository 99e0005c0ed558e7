//! A request to an upstream.

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use http_body::{Body, Frame, SizeHint};

/// A request. It can be sent any number of times.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The path that is appended to the base URL, with its leading slash and perhaps a query:
    /// `/responses`.
    pub path: Cow<'static, str>,
    /// The content type of the body.
    pub content_type: HeaderValue,
    /// Additional headers. Credentials and headers that only the gateway sets are ignored.
    pub headers: HeaderMap,
    /// The body.
    pub body: Payload,
    /// True to request an event stream, false for JSON.
    pub accept_stream: bool,
}

/// The body of a request. Its bytes are shared, not copied, however often they are sent.
#[derive(Clone)]
pub struct Payload(Arc<[Bytes]>);

impl Payload {
    fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self(Arc::new([bytes]))
    }
}

/// A body from consecutive chunks, which are sent without being concatenated.
impl From<Vec<Bytes>> for Payload {
    fn from(chunks: Vec<Bytes>) -> Self {
        Self(chunks.into())
    }
}

/// Shows the length and none of the contents.
impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}

/// A payload that is being sent, as a body for hyper.
pub(crate) struct RequestBody {
    payload: Payload,
    next: usize,
    remaining: u64,
}

impl RequestBody {
    pub(crate) fn new(payload: &Payload) -> Self {
        Self {
            payload: payload.clone(),
            next: 0,
            remaining: payload.len() as u64,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(chunk) = self.payload.0.get(self.next).cloned() else {
            return Poll::Ready(None);
        };
        self.next += 1;
        self.remaining -= chunk.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    /// Exact, so that it is sent with its `Content-Length`.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}
