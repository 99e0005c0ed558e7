//! The protocol held against its fixtures, and the laws that hold for any input.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod fixtures;
mod grammar;
mod laws;
mod rules;

use bytes::Bytes;
use sluicegate_responses::{Event, Fold, Response, StreamError};
use sse::{Decoder, Truncated};

/// The events of a stream's bytes.
fn events(stream: &str) -> Vec<Event> {
    let (events, end) = decode([stream.as_bytes()]);
    end.unwrap();
    events
}

/// The events of a stream that comes in chunks, and whether it ends between two of them.
fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Result<(), Truncated>) {
    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    for chunk in chunks {
        decoder.feed(Bytes::copy_from_slice(chunk));
        while let Some(event) = decoder.poll() {
            let event = event.unwrap();
            events.push(Event::read(&event.data()).unwrap());
            assert_eq!(event.name(), events.last().unwrap().kind(), "the name is the type");
        }
    }
    (events, decoder.finish())
}

/// What a stream amounts to.
fn fold(events: &[Event]) -> Result<Response, StreamError> {
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

/// A file among the fixtures.
fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures");
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
}
