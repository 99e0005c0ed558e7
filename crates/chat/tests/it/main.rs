//! The protocol held against its fixtures, and the laws that hold for any input.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod fixtures;
mod grammar;
mod laws;
mod rules;

use sluicegate_chat::{Completion, Event, Fold, StreamError};

/// The events of a stream's bytes, the same however they are cut.
fn events(stream: &str) -> Vec<Event> {
    let whole = decode(stream, usize::MAX);
    assert_eq!(whole, decode(stream, 1));
    assert_eq!(whole, decode(stream, 7));
    whole
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

/// What a stream amounts to.
fn fold(events: &[Event]) -> Result<Completion, StreamError> {
    let mut fold = Fold::new();
    events.iter().try_for_each(|event| fold.push(event))?;
    fold.finish()
}

/// The bytes of a stream.
fn text(events: &[Event]) -> String {
    let mut bytes = Vec::new();
    events.iter().for_each(|event| event.write(&mut bytes));
    String::from_utf8(bytes).unwrap()
}
