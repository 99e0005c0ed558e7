//! Bodies of responses, and the reading of bodies of requests.

pub(crate) mod buffered;
pub(crate) mod delivered;
pub(crate) mod events;
pub(crate) mod form;
pub(crate) mod format;
pub(crate) mod pieces;
pub(crate) mod plain;
pub(crate) mod upload;
pub(crate) mod voice;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::combinators::UnsyncBoxBody;

pub(crate) use self::buffered::whole;
use crate::outcome::Outcome;

/// The body of any response.
pub(crate) type Body = UnsyncBoxBody<Bytes, Aborted>;

/// A body that breaks off, and its connection with it: the way to say so once a plain reply is on its way.
#[derive(Debug)]
pub(crate) struct Aborted {
    /// How the answer ended by it.
    pub(crate) outcome: Outcome,
    /// What the log says of it.
    pub(crate) cause: String,
}

impl Aborted {
    pub(crate) fn new(outcome: Outcome, cause: impl Into<String>) -> Self {
        Self { outcome, cause: cause.into() }
    }
}

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the reply broke off")
    }
}

impl std::error::Error for Aborted {}

/// Names what could not be said to the engine.
pub(crate) fn name_dropped(headers: &mut HeaderMap, dropped: &[String]) {
    if dropped.is_empty() {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&dropped.join(", ")) {
        headers.insert(HeaderName::from_static("x-sluicegate-dropped"), value);
    }
}
