//! Reads the start of a stream that is relayed to a client of the upstream's protocol.

use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use translate::relay::{End, Guard, RelayProtocol};

use crate::answer::or_timeout;
use crate::incoming::IncomingBody;

/// A stream that is being relayed.
#[derive(Debug)]
pub struct Relay<S> {
    /// The guard that validates the stream.
    pub guard: Guard<S>,
    /// The first bytes for the client, until they are written.
    pub opening: Option<Vec<u8>>,
    /// The end of the stream, if it was already read.
    pub end: Option<End>,
    /// The rest of the body.
    pub body: IncomingBody,
    /// The timeout between two events.
    pub idle_timeout: Duration,
}

impl<S: RelayProtocol> Relay<S> {
    /// Reads a stream up to its first event.
    ///
    /// # Errors
    /// When it fails before that, or sends no event within `idle_timeout`.
    pub async fn begin(
        first: Bytes,
        mut body: IncomingBody,
        relay_protocol: S,
        model: &str,
        idle_timeout: Duration,
    ) -> Result<Self, EngineError> {
        let mut guard = Guard::new(relay_protocol, model.to_owned());
        let mut opening = Vec::new();
        let read_opening = async {
            let mut chunk = Some(first);
            while let Some(bytes) = chunk {
                let end = guard.feed(bytes, &mut opening)?;
                if end.is_some() || !opening.is_empty() {
                    return Ok(end);
                }
                chunk = body.chunk().await?;
            }
            guard.finish(&mut opening).map(Some)
        };
        let end = or_timeout(idle_timeout, read_opening).await?;
        Ok(Self {
            guard,
            opening: Some(opening),
            end,
            body,
            idle_timeout,
        })
    }
}
