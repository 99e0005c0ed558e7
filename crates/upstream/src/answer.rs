//! Decides by its first bytes whether a response is JSON or an event stream: servers do not always send the right
//! content type.

use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use tokio::time::timeout;
use translate::outbound::failure;

use crate::client::Upstream;
use crate::incoming::{Incoming, IncomingBody, MediaKind};

/// A successful response.
#[derive(Debug)]
pub enum Answer {
    /// One complete JSON document, whatever its content type.
    Json(Bytes),
    /// An event stream: its first bytes, and the rest of the body.
    Events(Bytes, IncomingBody),
}

impl Answer {
    /// Reads as much of a response as is needed to classify it: all of a JSON document of at most `limit` bytes, or the
    /// first chunk of a stream.
    ///
    /// # Errors
    /// The error that an unsuccessful status stands for, and `Upstream` if the body is neither JSON nor an event
    /// stream.
    pub async fn read(incoming: Incoming, upstream: &Upstream, limit: usize) -> Result<Self, EngineError> {
        let Incoming { status, kind, retry_after, mut body } = incoming;
        if !status.is_success() {
            return Err(failure(status.as_u16(), &read_error_body(body, upstream).await, retry_after));
        }
        let mut buffered = Vec::new();
        while let Some(chunk) = body.chunk().await? {
            let first = buffered.iter().chain(&chunk).find(|byte| !byte.is_ascii_whitespace()).copied();
            match first {
                // An event stream may start with blank lines.
                None if buffered.len() < MAX_LEADING_WHITESPACE => buffered.extend_from_slice(&chunk),
                Some(b'{') => return Self::document(buffered, chunk, body, limit).await,
                Some(_) if kind == MediaKind::EventStream => return Ok(Self::Events(join(buffered, chunk), body)),
                _ => break,
            }
        }
        Err(EngineError::Upstream("response is neither JSON nor an event stream".to_owned()))
    }

    /// Limits a stream to `limit` bytes, for callers that buffer it: beyond that it fails with `Upstream`.
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

    async fn document(buffered: Vec<u8>, chunk: Bytes, body: IncomingBody, limit: usize) -> Result<Self, EngineError> {
        let first = join(buffered, chunk);
        let rest = body.collect(limit.saturating_sub(first.len())).await?;
        let document = if rest.is_empty() { first } else { Bytes::from([first, rest].concat()) };
        Ok(Self::Json(document))
    }
}

/// Reads the body of an error response. The status alone is enough to report an error, so the timeout is short, and a
/// body that fails or is too large counts as empty.
pub(crate) async fn read_error_body(body: IncomingBody, upstream: &Upstream) -> Bytes {
    let read = timeout(ERROR_BODY_TIMEOUT, body.collect(upstream.max_error_body())).await;
    read.map_or_else(|_| Bytes::new(), Result::unwrap_or_default)
}

/// Runs `read`, and fails with `Timeout` if it takes longer than `idle_timeout`.
pub(crate) async fn or_timeout<T>(
    idle_timeout: Duration,
    read: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    let timed_out = |_| Err(EngineError::Timeout("idle timeout while waiting for an event".to_owned()));
    timeout(idle_timeout, read).await.unwrap_or_else(timed_out)
}

fn join(buffered: Vec<u8>, chunk: Bytes) -> Bytes {
    if buffered.is_empty() { chunk } else { Bytes::from([&buffered[..], &chunk].concat()) }
}

/// The maximum whitespace before the first significant byte, in bytes.
const MAX_LEADING_WHITESPACE: usize = 1024;
/// The timeout for reading the body of an error response.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(2);
