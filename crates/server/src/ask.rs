//! Asking an upstream, whatever it is asked for.

use bytes::Bytes;
use engine::EngineError;
use tokio::time::Instant;
use translate::outbound::Protocol;
use upstream::{Answer, Outgoing};
use wire::{Piece, Splice};

use crate::body::plain;
use crate::metrics::Metrics;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::routes::Server;

/// A target that gave no answer.
pub(crate) struct Fallen {
    /// What the client would be told.
    pub(crate) refusal: Refusal,
    /// Whether the next target is asked.
    pub(crate) may_fall_back: bool,
}

impl Fallen {
    /// The failure of an engine or upstream: the next one is asked, unless it is the request that is wrong.
    pub(crate) fn of(error: EngineError) -> Self {
        let is_callers = Outcome::of_failure(&error) == Outcome::Refused;
        Self { refusal: plain::refuse(&error), may_fall_back: !is_callers }
    }

    /// A target that cannot be asked.
    pub(crate) fn here(refusal: Refusal) -> Self {
        Self { refusal, may_fall_back: true }
    }

    /// A failure that any target would have.
    pub(crate) fn finally(refusal: impl Into<Refusal>) -> Self {
        Self { refusal: refusal.into(), may_fall_back: false }
    }
}

/// Asks, with the one retry when this is the `first` target of a request, and reads what kind of an answer it is.
///
/// # Errors
/// When there is none, or it is an error.
pub(crate) async fn ask(
    server: &Server,
    outgoing: &Outgoing,
    deadline: Instant,
    first: bool,
) -> Result<Answer, Fallen> {
    let incoming = server.upstream.ask(outgoing, deadline, first).await;
    let incoming = incoming.map_err(|failure| Fallen::of(failure.error))?;
    Answer::read(incoming, &server.upstream, MAX_REPLY).await.map_err(Fallen::of)
}

/// Tells of an upstream that gave no answer.
pub(crate) fn note(metrics: &Metrics, server: &Server, refusal: &Refusal) {
    let (name, code) = (&server.stated.name, refusal.error.code);
    metrics.upstream_failed(name, code);
    tracing::warn!(upstream = name, code, cause = refusal.cause, "an upstream gave no answer");
}

/// The path of a text protocol, behind the base URL.
pub(crate) const fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "/responses",
        Protocol::Chat => "/chat/completions",
        Protocol::Messages => "/messages",
    }
}

/// Puts the upstream's name of the model in the place of the client's.
pub(crate) fn rename(splice: &mut Splice<'_>, from: &str, to: &str) {
    if from != to {
        splice.replace(&["model"], serde_json::Value::from(to).to_string().as_bytes());
    }
}

/// An edited document, of which nothing large was copied.
pub(crate) fn pieces(splice: &Splice<'_>, whole: &Bytes) -> Vec<Bytes> {
    let piece = |piece| match piece {
        Piece::Kept(range) => whole.slice(range),
        Piece::New(bytes) => Bytes::copy_from_slice(bytes),
    };
    splice.pieces().map(piece).filter(|piece| !piece.is_empty()).collect()
}

/// Adds names that are not there yet.
pub(crate) fn add(names: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for name in more {
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

/// The largest whole reply of a text protocol, in bytes.
const MAX_REPLY: usize = 32 << 20;
