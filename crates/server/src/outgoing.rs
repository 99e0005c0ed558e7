//! Dispatch an upstream, whatever it is asked for.

use bytes::Bytes;
use tokio::time::Instant;
use translate::outbound::Protocol;
use upstream::{Answer, Outgoing};
use wire::{Piece, Splice};

use crate::attempt::TargetFailure;
use crate::targets::UpstreamTarget;

/// Asks a text upstream, with the one retry when this is the `first` target of a request, and reads what kind of an
/// answer it is.
///
/// # Errors
/// When there is none, or it is an error.
pub(crate) async fn ask(
    server: &UpstreamTarget,
    outgoing: &Outgoing,
    deadline: Instant,
    first: bool,
) -> Result<Answer, TargetFailure> {
    let incoming = server.upstream.ask(outgoing, deadline, first).await;
    let incoming = incoming.map_err(|failure| TargetFailure::of(failure.error))?;
    Answer::read(incoming, &server.upstream, MAX_REPLY).await.map_err(TargetFailure::of)
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
/// The longest stream of a text protocol, in bytes: an event is many times as long as what it tells. What was told is
/// kept to the end, for the last event or for the whole reply.
pub(crate) const MAX_STREAM: usize = 4 * MAX_REPLY;
