//! Response bodies, and the reading of request bodies.

pub(crate) mod buffered;
pub(crate) mod delivered;
pub(crate) mod events;
pub(crate) mod form;
pub(crate) mod format;
pub(crate) mod pieces;
pub(crate) mod upload;
pub(crate) mod voice;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::combinators::UnsyncBoxBody;

pub(crate) use self::buffered::whole;
use crate::outcome::Outcome;

/// The body of any response.
pub(crate) type Body = UnsyncBoxBody<Bytes, Aborted>;

/// The error of an aborted body. It closes the connection before the body is complete, which is the only way to report
/// a failure once a plain response has started.
#[derive(Debug)]
pub(crate) struct Aborted {
    /// The outcome to record.
    pub(crate) outcome: Outcome,
    /// The cause, for the log.
    pub(crate) cause: String,
}

impl Aborted {
    pub(crate) fn new(outcome: Outcome, cause: impl Into<String>) -> Self {
        Self { outcome, cause: cause.into() }
    }
}

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("response aborted")
    }
}

impl std::error::Error for Aborted {}

/// Lists the request fields that the engine cannot be given in the `x-sluicegate-dropped` header.
pub(crate) fn name_dropped(headers: &mut HeaderMap, dropped: &[String]) {
    if dropped.is_empty() {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&dropped.join(", ")) {
        headers.insert(HeaderName::from_static("x-sluicegate-dropped"), value);
    }
}
