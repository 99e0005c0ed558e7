//! The protocol held against its fixtures, and the laws that hold for any input.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod fixtures;
mod laws;
mod rules;

use sluicegate_chat::{Completion, Event, Fold, StreamError};

/// The events of a stream's bytes.
fn events(stream: &str) -> Vec<Event> {
    let data = stream.split("\n\n").filter_map(|block| block.strip_prefix("data: "));
    data.map(|data| Event::read(data).unwrap()).collect()
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
