//! Bodies of responses, and the reading of bodies of requests.

pub(crate) mod events;
pub(crate) mod form;
pub(crate) mod manner;
pub(crate) mod pieces;
pub(crate) mod plain;
pub(crate) mod upload;
pub(crate) mod voice;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// The body of any response.
pub(crate) type Body = UnsyncBoxBody<Bytes, Aborted>;

/// A body that breaks off, and its connection with it: the way to say so once a plain reply is on its way.
#[derive(Debug)]
pub(crate) struct Aborted;

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the reply broke off")
    }
}

impl std::error::Error for Aborted {}

/// A body that is all there.
pub(crate) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// Names what could not be said to the engine.
pub(crate) fn name_dropped(headers: &mut HeaderMap, dropped: &[String]) {
    if dropped.is_empty() {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&dropped.join(", ")) {
        headers.insert(HeaderName::from_static("x-sluicegate-dropped"), value);
    }
}
