//! Tests of the protocol against its fixtures, and laws that hold for any input.

#![allow(
    clippy::unwrap_used,
    reason = "test helpers panic at the point of failure"
)]

mod fixtures;
mod grammar;
mod laws;
mod lenient;
mod rules;
mod skimming;
mod usage;

use sluicegate_chat::{Completion, Event, Fold, StreamError};

/// Parses the events of a stream, and checks that the result does not depend on the chunk
/// boundaries.
fn events(stream: &str) -> Vec<Event> {
    let events = decode(stream, usize::MAX);
    assert_eq!(events, decode(stream, 1));
    assert_eq!(events, decode(stream, 7));
    events
}

fn decode(stream: &str, size: usize) -> Vec<Event> {
    let (mut decoder, mut events) = (sse::Decoder::new(), Vec::new());
    for piece in stream.as_bytes().chunks(size) {
        decoder.feed(piece.to_vec().into());
        while let Some(event) = decoder.poll() {
            events.push(Event::read(&event.unwrap().data()).unwrap());
        }
    }
    decoder.finish().unwrap();
    events
}

/// Folds the events of a stream.
fn fold(events: &[Event]) -> Result<Completion, StreamError> {
    let mut fold = Fold::default();
    events.iter().try_for_each(|event| fold.push(event))?;
    fold.finish()
}

/// Serializes the events of a stream.
fn text(events: &[Event]) -> String {
    let mut bytes = Vec::new();
    events.iter().for_each(|event| event.write(&mut bytes));
    String::from_utf8(bytes).unwrap()
}
