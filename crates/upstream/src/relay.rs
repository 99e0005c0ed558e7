//! The same protocol on both sides: bytes through, under the eyes of a guard.

use std::time::Duration;

use bytes::Bytes;
use engine::{EngineError, TextEvent};
use translate::outbound::{self, Protocol};
use translate::relay::{self, End, Guard, RelayProtocol};

use crate::answer::{next, within};
use crate::event_stream::gather;
use crate::{Answer, IncomingBody};

/// What an upstream says to a client of its own protocol.
#[derive(Debug)]
pub enum Relayed<S> {
    /// A stream, of which the first whole event was read.
    Stream(Box<Relay<S>>),
    /// A whole reply, as the client gets it.
    Whole(Bytes, End),
    /// What was asked for as a stream and came whole, or the other way round.
    Neutral(Vec<TextEvent>),
}

/// A stream that is being relayed.
#[derive(Debug)]
pub struct Relay<S> {
    /// What reads along.
    pub guard: Guard<S>,
    /// What the client gets first.
    pub opening: Vec<u8>,
    /// The end, when the opening is all.
    pub end: Option<End>,
    /// The rest.
    pub body: IncomingBody,
}

/// Reads an answer to a request for a stream of a text protocol, up to its first event.
///
/// # Errors
/// When the upstream failed before anything was said, or says nothing for as long as `patience`.
pub async fn stream<S: RelayProtocol>(
    answer: Answer,
    speech: S,
    protocol: Protocol,
    model: &str,
    patience: Duration,
) -> Result<Relayed<S>, EngineError> {
    match answer {
        Answer::Json(body) => Ok(Relayed::Neutral(outbound::reply(protocol, &body)?)),
        Answer::Events(first, body) => {
            Relay::begin(first, body, speech, model, patience).await.map(Box::new).map(Relayed::Stream)
        }
    }
}

/// Reads an answer to a request for a whole reply of a text protocol.
///
/// # Errors
/// When the upstream failed.
pub async fn whole<S: RelayProtocol>(
    answer: Answer,
    protocol: Protocol,
    model: &str,
    patience: Duration,
) -> Result<Relayed<S>, EngineError> {
    match answer {
        Answer::Json(body) => {
            let (body, end) = relay::reply::<S>(&body, model)?;
            Ok(Relayed::Whole(body.into(), end))
        }
        Answer::Events(first, body) => gather(protocol, first, body, patience).await.map(Relayed::Neutral),
    }
}

impl<S: RelayProtocol> Relay<S> {
    /// Reads a stream up to its first event.
    ///
    /// # Errors
    /// When it fails before that, or says nothing for as long as `patience`.
    pub async fn begin(
        first: Bytes,
        mut body: IncomingBody,
        speech: S,
        model: &str,
        patience: Duration,
    ) -> Result<Self, EngineError> {
        let mut guard = Guard::new(speech, model.to_owned());
        let mut opening = Vec::new();
        let begun = async {
            let mut piece = Some(first);
            while let Some(bytes) = piece {
                let end = guard.feed(bytes, &mut opening)?;
                if end.is_some() || !opening.is_empty() {
                    return Ok(end);
                }
                piece = next(&mut body).await?;
            }
            guard.finish(&mut opening).map(Some)
        };
        let end = within(patience, begun).await?;
        Ok(Self { guard, opening, end, body })
    }
}
