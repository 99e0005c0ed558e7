//! Conformance tests: vectors, properties and a simple reference decoder.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod bounds;
mod chunking;
mod laws;
mod reference;
mod vectors;

use bytes::Bytes;
use sluicegate_sse::{DecodeError, Decoder};

/// The type, data and last event id of each event, as a client sees them.
type Seen = Vec<(String, String, String)>;

/// Decodes chunks in order. Returns the events and whether the stream was complete.
fn decode(
    mut decoder: Decoder,
    pieces: impl IntoIterator<Item = Bytes>,
) -> Result<(Seen, bool), DecodeError> {
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        while let Some(event) = decoder.poll() {
            let event = event?;
            seen.push((
                event.name().into_owned(),
                event.data().into_owned(),
                event.last_event_id().to_owned(),
            ));
        }
    }
    Ok((seen, decoder.finish().is_ok()))
}

/// Decodes bytes split at `cuts`, in any order.
fn decode_cut(bytes: &Bytes, mut cuts: Vec<usize>) -> (Seen, bool) {
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let pieces = cuts.windows(2).map(|cut| bytes.slice(cut[0]..cut[1]));
    decode(Decoder::new(), pieces).expect("within the limits")
}
