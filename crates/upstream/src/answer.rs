//! What kind of an answer there is, told by its bytes: servers are not always right about the type of a body.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use http_body::Body as _;
use tokio::time::timeout;
use translate::outbound::failure;

use crate::{Incoming, IncomingBody, MediaKind, Upstream};

/// An answer of success.
#[derive(Debug)]
pub enum Answer {
    /// One JSON document, whatever its type says (spec §4.2).
    Json(Bytes),
    /// An event stream: what came first of it, and the rest.
    Events(Bytes, IncomingBody),
}

impl Answer {
    /// Reads as much of an answer as tells what it is: all of a JSON document of at most `limit` bytes, the first piece of
    /// a stream.
    ///
    /// # Errors
    /// What a status other than success means, and when the answer is neither.
    pub async fn read(incoming: Incoming, upstream: &Upstream, limit: usize) -> Result<Self, EngineError> {
        let Incoming { status, kind, retry_after, mut body } = incoming;
        if !status.is_success() {
            return Err(failure(status.as_u16(), &said_of_failure(body, upstream).await, retry_after));
        }
        let mut begun = Vec::new();
        while let Some(piece) = next(&mut body).await? {
            let first = begun.iter().chain(&piece).find(|byte| !byte.is_ascii_whitespace()).copied();
            match first {
                // A stream whose first line is blank is still one.
                None if begun.len() < MAX_BLANK => begun.extend_from_slice(&piece),
                Some(b'{') => return Self::document(begun, piece, body, limit).await,
                Some(_) if kind == MediaKind::EventStream => return Ok(Self::Events(join(begun, piece), body)),
                _ => break,
            }
        }
        Err(EngineError::Upstream("an answer that is neither JSON nor an event stream".to_owned()))
    }

    /// The same, of which a stream fails with `Upstream` once it has more than `limit` bytes: for who keeps what it tells.
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

    async fn document(begun: Vec<u8>, piece: Bytes, body: IncomingBody, limit: usize) -> Result<Self, EngineError> {
        let first = join(begun, piece);
        let rest = body.collect(limit.saturating_sub(first.len())).await?;
        let whole = if rest.is_empty() { first } else { Bytes::from([first, rest].concat()) };
        Ok(Self::Json(whole))
    }
}

/// What the body of an error says. Without it an error still has its status, so it is not waited for long.
pub(crate) async fn said_of_failure(body: IncomingBody, upstream: &Upstream) -> Bytes {
    let said = timeout(ERROR_BODY, body.collect(upstream.error_body())).await;
    said.map_or_else(|_| Bytes::new(), Result::unwrap_or_default)
}

/// The next piece of a body.
pub(crate) async fn next(body: &mut IncomingBody) -> Result<Option<Bytes>, EngineError> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.transpose()? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
        }
    }
}

/// What `work` comes to within `patience`.
pub(crate) async fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    timeout(patience, work).await.unwrap_or_else(|_| Err(EngineError::Timeout("no first event".to_owned())))
}

fn join(begun: Vec<u8>, piece: Bytes) -> Bytes {
    if begun.is_empty() { piece } else { Bytes::from([&begun[..], &piece].concat()) }
}

/// So much white space before the first byte that tells something.
const MAX_BLANK: usize = 1024;
/// The body of an error is waited for so long.
const ERROR_BODY: Duration = Duration::from_secs(2);
