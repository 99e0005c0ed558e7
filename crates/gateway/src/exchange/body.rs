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
use http_body_util::{BodyExt as _, Full};
use telemetry::outcome::Outcome;

use self::buffered::Buffered;

/// The body of any request. It has one type, so that the code that answers requests is compiled once,
/// in this crate, and not for each kind of connection.
pub type ClientBody = UnsyncBoxBody<Bytes, BodyError>;

/// The error of the body of a request.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// Boxes the body of a request.
pub fn client_body<B>(body: B) -> ClientBody
where
    B: http_body::Body<Data = Bytes, Error: Into<BodyError>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Creates the body of a request that is complete at once.
pub fn whole_client_body(bytes: impl Into<Bytes>) -> ClientBody {
    client_body(Full::new(bytes.into()))
}

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
