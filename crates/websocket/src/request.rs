//! The request of a client for one response.

use bytes::Bytes;
use gateway::connection::client_body::{ClientBody, whole_client_body};
use http::{HeaderMap, Request};
use wire::Splice;

use crate::conversations::Before;
use crate::event::Lane;

/// A request of a client.
pub(crate) struct Turn {
    pub(crate) lane: Lane,
    pub(crate) before: Before,
    /// False if the request only prepares a response.
    pub(crate) generates: bool,
    /// The event of the client.
    pub(crate) text: Bytes,
}

impl Turn {
    /// Returns the body of the request of HTTP: the event without the members that concern the
    /// connection, and with the conversation before it.
    pub(crate) fn body(&self) -> Vec<u8> {
        let mut splice = Splice::new(&self.text);
        splice.set("stream", b"true");
        self.before.expand(&mut splice);
        let names = ["type", "stream_id", "generate", "background", PREVIOUS];
        let kept = usize::from(!self.before.is_kept() || self.before.refers_elsewhere());
        splice.remove(&[], &names[..names.len() - kept]);
        splice.to_vec()
    }
}

/// Returns a request to the gateway.
pub(crate) fn post(path: &'static str, body: Vec<u8>, headers: HeaderMap) -> Request<ClientBody> {
    let mut request = Request::new(whole_client_body(body));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = http::Uri::from_static(path);
    *request.headers_mut() = headers;
    request
}

/// The member with the id of the response before.
pub(crate) const PREVIOUS: &str = "previous_response_id";
