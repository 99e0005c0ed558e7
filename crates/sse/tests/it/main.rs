//! The crate held against the standard's rules: vectors, laws, and a slow decoder that is plainly right.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod bounds;
mod chunking;
mod laws;
mod reference;
mod vectors;

use bytes::Bytes;
use sluicegate_sse::{DecodeError, Decoder};

/// Type, data and last event id of each event, as a client sees them.
type Seen = Vec<(String, String, String)>;

/// Decodes pieces in order.
fn decode(mut decoder: Decoder, pieces: impl IntoIterator<Item = Bytes>) -> Result<(Seen, bool), DecodeError> {
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        while let Some(event) = decoder.poll() {
            let event = event?;
            seen.push((event.name().into_owned(), event.data().into_owned(), event.last_event_id().to_owned()));
        }
    }
    Ok((seen, decoder.finish().is_ok()))
}

/// Decodes bytes cut at `cuts`, which need not be in order.
fn decode_cut(bytes: &Bytes, mut cuts: Vec<usize>) -> (Seen, bool) {
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let pieces = cuts.windows(2).map(|cut| bytes.slice(cut[0]..cut[1]));
    decode(Decoder::new(), pieces).expect("within the limits")
}
