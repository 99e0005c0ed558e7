//! The arguments of a call, emitted incrementally, that always form a JSON object in the end.

mod prefix;

use serde_json::Value;

use self::prefix::Prefix;

/// The arguments of one call so far.
///
/// Emitted text cannot be taken back, so only text that is a valid prefix of a JSON object is
/// emitted. If the model stops early or writes invalid JSON, the object is closed with all of the
/// model's text as its field `_raw`, as in an unstreamed call. Text after a complete object is
/// discarded.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    text: String,
    /// Length in bytes of the longest prefix that can start a JSON object.
    valid: usize,
    /// Number of bytes emitted so far.
    emitted: usize,
    prefix: Prefix,
}

impl Arguments {
    /// Appends a fragment and returns the text that can be emitted now, which may be empty.
    pub(crate) fn push(&mut self, piece: &str) -> &str {
        let was_valid = self.valid == self.text.len();
        self.text.push_str(piece);
        if was_valid {
            self.valid += piece
                .bytes()
                .take_while(|byte| self.prefix.take(*byte))
                .count();
        }
        match self.prefix.is_started() {
            true => self.emit_until(self.valid),
            false => "",
        }
    }

    /// Ends the arguments and returns the rest to emit, which may be empty. If the model was
    /// truncated, that is the rest of its text, unmodified.
    pub(crate) fn finish(&mut self, truncated: bool) -> String {
        if self.text.trim().is_empty() {
            return String::new();
        }
        if truncated {
            return self.emit_until(self.text.len()).to_owned();
        }
        let Some(closing) = self.prefix.closing() else {
            return String::new();
        };
        let raw = Value::from(self.text.as_str());
        format!("{closing}\"{RAW}\":{raw}}}")
    }

    /// Returns the text up to `end` that was not emitted yet, and marks it as emitted.
    fn emit_until(&mut self, end: usize) -> &str {
        let start = std::mem::replace(&mut self.emitted, end);
        &self.text[start..end]
    }
}

/// The field that keeps text that is not a JSON object.
pub(crate) const RAW: &str = "_raw";
