//! Relays replies between an upstream and a client of the same protocol, validated by a guard.

use std::time::Duration;

use bytes::Bytes;
use engine::{EngineError, TextEvent};
use translate::outbound::{self, Protocol};
use translate::relay::{self, End, Guard, RelayProtocol};

use crate::answer::{Answer, next, or_timeout};
use crate::event_stream::collect_events;
use crate::incoming::IncomingBody;

/// A reply of an upstream to a client of the same protocol.
#[derive(Debug)]
pub enum Relayed<S> {
    /// A stream whose first complete event was read.
    Stream(Box<Relay<S>>),
    /// A complete reply, as it is sent to the client.
    Whole(Bytes, End),
    /// A complete reply to a request for a stream, or a stream where a complete reply was requested.
    Neutral(Vec<TextEvent>),
}

/// A stream that is being relayed.
#[derive(Debug)]
pub struct Relay<S> {
    /// The guard that validates the stream.
    pub guard: Guard<S>,
    /// The first bytes for the client.
    pub opening: Vec<u8>,
    /// The end of the stream, if it was already read.
    pub end: Option<End>,
    /// The rest of the body.
    pub body: IncomingBody,
}

/// Reads the response to a streaming request of a text protocol, up to its first event.
///
/// # Errors
/// When the upstream fails before its first event, or sends none within `idle_timeout`.
pub async fn stream<S: RelayProtocol>(
    answer: Answer,
    relay_protocol: S,
    protocol: Protocol,
    model: &str,
    idle_timeout: Duration,
) -> Result<Relayed<S>, EngineError> {
    match answer {
        Answer::Json(body) => Ok(Relayed::Neutral(outbound::reply(protocol, &body)?)),
        Answer::Events(first, body) => {
            Relay::begin(first, body, relay_protocol, model, idle_timeout).await.map(Box::new).map(Relayed::Stream)
        }
    }
}

/// Reads the response to a non-streaming request of a text protocol.
///
/// # Errors
/// When the upstream fails.
pub async fn whole<S: RelayProtocol>(
    answer: Answer,
    protocol: Protocol,
    model: &str,
    idle_timeout: Duration,
) -> Result<Relayed<S>, EngineError> {
    match answer {
        Answer::Json(body) => {
            let (body, end) = relay::reply::<S>(&body, model)?;
            Ok(Relayed::Whole(body.into(), end))
        }
        Answer::Events(first, body) => collect_events(protocol, first, body, idle_timeout).await.map(Relayed::Neutral),
    }
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
                chunk = next(&mut body).await?;
            }
            guard.finish(&mut opening).map(Some)
        };
        let end = or_timeout(idle_timeout, read_opening).await?;
        Ok(Self { guard, opening, end, body })
    }
}
