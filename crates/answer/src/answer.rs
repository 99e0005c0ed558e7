//! Reads a response as JSON or as an event stream, as its first bytes show.

use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use tokio::time::timeout;
use upstream::{Incoming, IncomingBody};
use vendor::failure;

use crate::opening::{Content, Opening};

/// A successful response.
#[derive(Debug)]
pub enum Answer {
    /// One complete JSON document, whatever its content type.
    Json(Bytes),
    /// An event stream, whatever its content type: its first bytes, and the rest of the body.
    Events(Bytes, IncomingBody),
}

impl Answer {
    /// Reads as much of a response as is needed to classify it: all of a JSON document of at most
    /// `limit` bytes, or the first chunk of a stream.
    ///
    /// # Errors
    /// The error that an unsuccessful status stands for, and `Upstream` if the body is neither JSON
    /// nor an event stream.
    pub async fn read(incoming: Incoming, limit: usize) -> Result<Self, EngineError> {
        let is_event_stream = incoming.is_event_stream;
        let mut body = successful_body(incoming).await?;
        let Opening { content, bytes } = Opening::read(&mut body, is_event_stream).await?;
        match content {
            Content::Json => {
                let rest = body.collect(limit.saturating_sub(bytes.len())).await?;
                Ok(Self::Json(if rest.is_empty() {
                    bytes
                } else {
                    [bytes, rest].concat().into()
                }))
            }
            Content::Events => Ok(Self::Events(bytes, body.with_events())),
            Content::Other => Err(EngineError::Upstream(
                "response is neither JSON nor an event stream".to_owned(),
            )),
        }
    }

    /// Limits a stream to `limit` bytes, for callers that buffer it: beyond that it fails with
    /// `Upstream`.
    #[must_use]
    pub fn at_most(self, limit: usize) -> Self {
        match self {
            Self::Events(first, body) => {
                let body = body.at_most(limit.saturating_sub(first.len()));
                Self::Events(first, body)
            }
            Self::Json(_) => self,
        }
    }
}

/// Returns the body of a successful response.
///
/// # Errors
/// The error that any other status stands for. The status alone is enough to report it, so the
/// timeout for its body is short, and a body that cannot be decoded, fails or is too large counts
/// as empty.
pub(crate) async fn successful_body(incoming: Incoming) -> Result<IncomingBody, EngineError> {
    let Incoming {
        status,
        is_encoded,
        retry_after,
        body,
        ..
    } = incoming;
    if status.is_success() {
        return Ok(body);
    }
    if is_encoded {
        body.drain();
        return Err(failure(status.as_u16(), &[], retry_after));
    }
    let read = timeout(ERROR_BODY_TIMEOUT, body.collect(MAX_ERROR_BODY)).await;
    let body = read.map_or_else(|_| Bytes::new(), Result::unwrap_or_default);
    Err(failure(status.as_u16(), &body, retry_after))
}

/// The maximum size of the body of an error response, in bytes.
pub(crate) const MAX_ERROR_BODY: usize = 64 << 10;
/// The timeout for reading the body of an error response.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(2);
