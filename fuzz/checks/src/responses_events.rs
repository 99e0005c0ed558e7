//! Any lines as the events of a Responses stream.

use responses::Event;

use crate::leading_text;
use crate::protocol::read_events;

/// Checks one input; a panic is a finding.
pub fn check(bytes: &[u8]) {
    let lines = leading_text(bytes);
    read_events!(responses, lines, Event::Completed(_) | Event::Incomplete(_));
}
