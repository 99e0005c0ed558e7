//! Tests of the protocol against its fixtures, its rules and its grammar, and laws that hold for
//! any input.

#![allow(
    clippy::unwrap_used,
    reason = "test helpers panic at the point of failure"
)]

mod fixtures;
mod form;
mod grammar;
mod laws;
mod lenient;
mod rules;

use sluicegate_images::{Event, Fold, Operation, Response, StreamError};

/// Parses the events of a stream, and checks that the result does not depend on the chunk
/// boundaries.
fn events(stream: &str) -> Vec<Event> {
    let events = decode(stream, usize::MAX);
    assert_eq!(events, decode(stream, 7));
    events
}

fn decode(stream: &str, size: usize) -> Vec<Event> {
    let (mut decoder, mut events) = (sse::Decoder::new(), Vec::new());
    for piece in stream.as_bytes().chunks(size) {
        decoder.feed(piece.to_vec().into());
        while let Some(event) = decoder.poll() {
            let event = event.unwrap();
            let read = Event::read(&event.data()).unwrap();
            assert_eq!(event.name(), read.kind(), "the name is the type");
            events.push(read);
        }
    }
    decoder.finish().unwrap();
    events
}

/// Folds the events of a stream.
fn fold(
    operation: Operation,
    count: Option<u32>,
    events: &[Event],
) -> Result<Response, StreamError> {
    let mut fold = Fold::new(operation, count);
    events
        .iter()
        .try_for_each(|event| fold.push(event.clone()))?;
    fold.finish()
}

/// Serializes the events of a stream.
fn text(events: &[Event]) -> String {
    let mut bytes = Vec::new();
    events.iter().for_each(|event| event.write(&mut bytes));
    String::from_utf8(bytes).unwrap()
}
