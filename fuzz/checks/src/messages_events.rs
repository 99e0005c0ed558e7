//! Any lines as the events of a Messages stream.

use crate::leading_text;
use crate::protocol::read_events;

/// Checks one input; a panic is a finding.
pub fn check(bytes: &[u8]) {
    let lines = leading_text(bytes);
    read_events!(messages, lines, messages::Event::MessageStop(_));
}
