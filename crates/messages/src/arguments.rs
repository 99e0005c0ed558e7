//! The arguments of a call as a model writes them: told piece by piece, and in sum always a JSON object.

mod prefix;

use serde_json::Value;

use self::prefix::Prefix;

/// The arguments of one call so far.
///
/// A piece that was told cannot be taken back, so nothing is told that cannot begin a JSON object. When the model
/// breaks off or goes astray, the object is ended with all that the model wrote as its member `_raw`, as a call that
/// is not streamed has it (wire-reference §9.2). What comes after a whole object is left out.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    text: String,
    /// So many bytes of the text begin an object.
    sound: usize,
    /// So many bytes of the text are told.
    told: usize,
    prefix: Prefix,
}

impl Arguments {
    /// Takes the next piece and gives what can be told by now; that may be nothing.
    pub(crate) fn push(&mut self, piece: &str) -> &str {
        let was_sound = self.sound == self.text.len();
        self.text.push_str(piece);
        if was_sound {
            self.sound += piece.bytes().take_while(|byte| self.prefix.take(*byte)).count();
        }
        match self.prefix.is_begun() {
            true => self.tell(self.sound),
            false => "",
        }
    }

    /// Ends the arguments and gives what is left to tell; that may be nothing. When the model was cut off it is what
    /// the model wrote, no more.
    pub(crate) fn finish(&mut self, cut: bool) -> String {
        if self.text.trim().is_empty() {
            return String::new();
        }
        if cut {
            return self.tell(self.text.len()).to_owned();
        }
        let Some(closing) = self.prefix.closing() else { return String::new() };
        let raw = Value::from(self.text.as_str());
        format!("{closing}\"{RAW}\":{raw}}}")
    }

    /// What of the text is not told before `end`; it is then.
    fn tell(&mut self, end: usize) -> &str {
        let begin = std::mem::replace(&mut self.told, end);
        &self.text[begin..end]
    }
}

/// The member that keeps what is no JSON object.
pub(crate) const RAW: &str = "_raw";
