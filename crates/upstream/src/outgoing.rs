//! A request to an upstream.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};

use crate::sockets::ClientSockets;

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
    /// The client on whose behalf it is sent, by any name that no other client has. The memory for
    /// the long events of the response is its.
    pub client: Arc<str>,
    /// The WebSockets of the client's connection, for a request that can go over one: a stream of
    /// Responses. It does if the upstream has [`Options::websocket`](crate::Options::websocket).
    pub sockets: Option<ClientSockets>,
}

/// The body of a request. Its bytes are shared, not copied, however often they are sent.
#[derive(Clone)]
pub struct Payload(Arc<[Bytes]>);

impl Payload {
    pub(crate) fn chunks(&self) -> &[Bytes] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
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
