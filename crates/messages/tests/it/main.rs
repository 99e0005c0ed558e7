//! Tests of the protocol against its fixtures, and laws that hold for any input.

#![allow(
    clippy::unwrap_used,
    reason = "test helpers panic at the point of failure"
)]

mod errors;
mod fixtures;
mod grammar;
mod laws;
mod lenient;
mod rules;

use sluicegate_messages::{Event, Fold, Message, StreamError};

/// Parses the events of a stream.
fn events(stream: &str) -> Vec<Event> {
    let data = stream
        .split("\n\n")
        .filter_map(|block| block.split_once("\ndata: "));
    data.map(|(_, data)| Event::read(data).unwrap()).collect()
}

/// Folds the events of a stream.
fn fold(events: &[Event]) -> Result<Message, StreamError> {
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
