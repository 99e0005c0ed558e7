//! Response bodies, and the reading of request bodies.

pub mod budget;
pub(crate) mod buffered;
pub(crate) mod delivered;
pub(crate) mod events;
pub(crate) mod form;
pub(crate) mod pieces;
pub mod upload;

use std::error::Error;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use telemetry::outcome::Outcome;

use self::buffered::Buffered;

/// The body of any response.
pub type Body = UnsyncBoxBody<Bytes, Aborted>;

/// A body that is complete at once.
pub fn whole(bytes: Bytes) -> Body {
    Buffered::from(bytes).into_body()
}

/// The error of an aborted body. It closes the connection before the body is complete, which is the
/// only way to report a failure once a plain response has started.
#[derive(Debug)]
pub struct Aborted {
    /// The outcome of the request.
    pub outcome: Outcome,
    /// The cause, for the log.
    pub cause: String,
}

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("response aborted")
    }
}

impl Error for Aborted {}
