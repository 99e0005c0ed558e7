//! Freeform tools, which take a text: the functions that stand for them, and the text in their
//! arguments.

use serde_json::{Value, json};
use wire::Json;

/// The name of the only parameter of a function that stands for a freeform tool.
pub(super) const INPUT: &str = "input";

/// Returns the parameters of a function that takes one text. A grammar that the text should follow,
/// its syntax and its definition, cannot be enforced, but the model can read it.
pub(super) fn parameters(grammar: Option<(&str, &str)>) -> Json {
    let grammar = grammar
        .map(|(syntax, definition)| format!(" It follows this grammar ({syntax}):\n{definition}"));
    let description = format!(
        "The input of the tool, as plain text.{}",
        grammar.unwrap_or_default()
    );
    let parameters = json!({
        "type": "object",
        "properties": { INPUT: { "type": "string", "description": description } },
        "required": [INPUT],
        "additionalProperties": false,
    });
    Json::from(&parameters)
}

/// Decodes `{"input":"…"}`, which comes in pieces, so that the text is known as it is written.
#[derive(Debug, Default)]
pub(super) struct InputReader {
    /// The arguments so far.
    raw: String,
    /// The position up to which the text is decoded; `None` before its beginning.
    at: Option<usize>,
    is_closed: bool,
}

impl InputReader {
    /// Adds a piece of the arguments, and returns the text that it completes.
    pub(super) fn push(&mut self, piece: &str) -> String {
        self.raw.push_str(piece);
        if self.at.is_none() {
            self.at = text_start(&self.raw);
        }
        let mut text = String::new();
        while let Some(decoded) = self.next() {
            text.push_str(&decoded);
        }
        text
    }

    /// Returns the rest of the text at the end of the arguments. Arguments of another form are the
    /// text themselves, unless they are an object with one text.
    pub(super) fn finish(self) -> String {
        if self.at.is_some() {
            return String::new();
        }
        match serde_json::from_str(&self.raw) {
            Ok(Value::String(text)) => text,
            Ok(Value::Object(members)) => match members.values().collect::<Vec<_>>().as_slice() {
                [] => String::new(),
                [Value::String(text)] => text.clone(),
                _ => self.raw,
            },
            _ => self.raw,
        }
    }

    /// Decodes the next run of plain characters, or the next escape, if it is complete.
    fn next(&mut self) -> Option<String> {
        let at = self.at.filter(|_| !self.is_closed)?;
        let rest = &self.raw[at..];
        let plain = rest.find(['"', '\\']).unwrap_or(rest.len());
        if plain > 0 {
            self.at = Some(at + plain);
            return Some(rest[..plain].to_owned());
        }
        if rest.starts_with('"') {
            self.is_closed = true;
            return None;
        }
        let escape = rest.get(..escape_length(rest)?)?;
        self.at = Some(at + escape.len());
        // A lone surrogate is no character.
        let decoded = serde_json::from_str(&format!("\"{escape}\""));
        Some(decoded.unwrap_or_else(|_| char::REPLACEMENT_CHARACTER.to_string()))
    }
}

/// Returns the position behind `{"input":"`, with white space between the tokens.
fn text_start(raw: &str) -> Option<usize> {
    let mut rest = raw;
    for token in ["{", "\"input\"", ":", "\""] {
        rest = rest.trim_start().strip_prefix(token)?;
    }
    Some(raw.len() - rest.len())
}

/// Returns the length of the escape at the beginning of a text, with both halves of a surrogate
/// pair, or `None` if it is not complete.
fn escape_length(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    if *bytes.get(1)? != b'u' {
        return Some(2);
    }
    let is_high = matches!(bytes.get(2)?, b'd' | b'D')
        && matches!(bytes.get(3)?, b'8' | b'9' | b'a' | b'b' | b'A' | b'B');
    if !is_high {
        return Some(6);
    }
    bytes.get(5)?;
    match (bytes.get(6)?, bytes.get(7)) {
        (b'\\', Some(b'u')) => Some(12),
        (b'\\', None) => None,
        _ => Some(6),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let mut reader = InputReader::default();
        let pieces = pieces.into_iter().map(|piece| reader.push(piece));
        let text = pieces.collect();
        (text, reader.finish())
    }

    #[test]
    fn text_is_known_as_it_is_written() {
        let mut reader = InputReader::default();
        let pieces = [
            "{ \"in",
            "put\": \"*** Be",
            "gin\\",
            "nA\\u00",
            "e4\\ud83d",
            "\\ude00",
            "b\"",
            "}",
        ];
        let texts = pieces.map(|piece| reader.push(piece));
        assert_eq!(texts, ["", "*** Be", "gin", "\nA", "ä", "😀", "b", ""]);
        assert_eq!(reader.finish(), "");
    }

    #[test]
    fn arguments_of_another_form_are_the_text() {
        for (raw, expected) in [
            ("*** Begin Patch", "*** Begin Patch"),
            ("\"*** Begin Patch\"", "*** Begin Patch"),
            (r#"{"patch":"a"}"#, "a"),
            (r#"{"patch":"a","n":1}"#, r#"{"patch":"a","n":1}"#),
            ("{}", ""),
            ("", ""),
        ] {
            assert_eq!(read([raw]), (String::new(), expected.to_owned()), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_whatever_its_pieces(text: String, is_ascii: bool, cut in 1..9_usize) {
            let mut arguments = json!({ "input": text }).to_string();
            if is_ascii {
                // Each unit of UTF-16 as an escape.
                let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
                arguments = format!("{{\"input\":\"{units}\"}}");
            }
            let chars: Vec<char> = arguments.chars().collect();
            let pieces: Vec<String> = chars.chunks(cut).map(|piece| piece.iter().collect()).collect();
            prop_assert_eq!(read(pieces.iter().map(String::as_str)), (text, String::new()));
        }
    }
}
