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

use bytes::Bytes;
use sluicegate_responses::{Event, Fold, Response, StreamError};
use sse::{Decoder, Truncated};

/// Parses the events of a stream.
fn events(stream: &str) -> Vec<Event> {
    let (events, end) = decode([stream.as_bytes()]);
    end.unwrap();
    events
}

/// Parses the events of a chunked stream, and checks that it ends between two events.
fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Result<(), Truncated>) {
    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    for chunk in chunks {
        decoder.feed(Bytes::copy_from_slice(chunk));
        while let Some(event) = decoder.poll() {
            let event = event.unwrap();
            events.push(Event::read(&event.data()).unwrap());
            assert_eq!(
                event.name(),
                events.last().unwrap().kind(),
                "the name is the type"
            );
        }
    }
    (events, decoder.finish())
}

/// Folds the events of a stream.
fn fold(events: &[Event]) -> Result<Response, StreamError> {
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

/// Reads a fixture.
fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!("{FIXTURES}/{name}")).unwrap()
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures");
