//! The arguments of a call, emitted as they arrive.

use serde_json::json;

/// The arguments of one call so far.
///
/// Text that begins with a brace is emitted unchanged, piece by piece. A call takes an object, so
/// other text is held back until the call ends, and emitted as the field `_raw`. Text is never
/// completed: whoever finds that it is truncated ends the stream with a failure.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    /// The text that is held back.
    held: String,
    is_object: bool,
}

impl Arguments {
    /// Appends a piece and returns the text to emit now, which may be empty.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        self.is_object |= self.held.trim_start_matches(BLANKS).starts_with('{');
        if self.is_object {
            std::mem::take(&mut self.held)
        } else {
            String::new()
        }
    }

    /// Ends the arguments and returns the rest to emit, which may be empty. If the model was
    /// truncated, that is the rest of its text, unmodified.
    pub(crate) fn finish(self, truncated: bool) -> String {
        if self.held.trim().is_empty() {
            String::new()
        } else if truncated {
            self.held
        } else {
            json!({ RAW: self.held }).to_string()
        }
    }
}

/// The white space of JSON.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
/// The field that keeps text that is not a JSON object.
pub(crate) const RAW: &str = "_raw";
