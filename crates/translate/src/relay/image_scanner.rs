//! Scans the top-level members of an image reply chunk by chunk, and detects the end of its JSON.

use engine::{EngineError, Usage};
use memchr::memchr2;

use super::images;

/// A scanner for the JSON of an image reply with status 200 that does not buffer it. It does not
/// validate the JSON.
#[derive(Clone, Debug, Default)]
pub struct ImageScanner {
    depth: u64,
    lexical: Lexical,
    /// The position within a top-level member.
    position: Position,
    /// The name of the current top-level member, with its escapes.
    name: Vec<u8>,
    /// True within the top-level array of images.
    in_images: bool,
    has_images: bool,
    has_error: bool,
    closed: bool,
    /// True within a top-level `usage` object, which is being copied.
    in_usage: bool,
    usage: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Lexical {
    #[default]
    Structure,
    String,
    /// The last byte was a backslash in a string.
    Escape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    #[default]
    BeforeName,
    Name,
    BeforeValue,
    Value,
}

impl ImageScanner {
    /// Scans the next chunk.
    pub fn read(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            let before = bytes;
            bytes = match self.lexical {
                Lexical::Structure => {
                    self.structure(first);
                    rest
                }
                // Images are long strings, so string contents are skipped with memchr.
                Lexical::String => match memchr2(b'"', b'\\', bytes) {
                    Some(at) => {
                        self.push_name(&bytes[..at]);
                        self.quote_or_backslash(bytes[at]);
                        &bytes[at + 1..]
                    }
                    None => {
                        self.push_name(bytes);
                        &[]
                    }
                },
                Lexical::Escape => {
                    self.push_name(&[b'\\', first]);
                    self.lexical = Lexical::String;
                    rest
                }
            };
            self.push_usage(&before[..before.len() - bytes.len()]);
        }
    }

    /// Returns true if the array of images has at least the start of one.
    #[must_use]
    pub fn has_images(&self) -> bool {
        self.has_images
    }

    /// Returns true if the object has a member `error` that is not `null`.
    #[must_use]
    pub fn has_error(&self) -> bool {
        self.has_error
    }

    /// Returns the token usage once the outermost bracket was closed, if the reply has a valid one
    /// of bounded size.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        if self.closed {
            images::usage(&self.usage)
        } else {
            None
        }
    }

    /// Checks a reply that is too long to be buffered, as far as it was read; `is_at_end` if that
    /// is all of it.
    ///
    /// # Errors
    /// When it is truncated, has no images, or has an error after them.
    pub fn check(&self, is_at_end: bool) -> Result<(), EngineError> {
        let is_truncated = is_at_end && !self.closed;
        if is_truncated {
            Err(EngineError::Truncated(
                "reply ends before the end of its JSON".to_owned(),
            ))
        } else if self.has_error {
            Err(EngineError::Upstream(
                "error after the images of a reply with status 200".to_owned(),
            ))
        } else if self.closed && !self.has_images {
            Err(EngineError::Upstream(
                "long reply without images".to_owned(),
            ))
        } else {
            Ok(())
        }
    }

    fn structure(&mut self, byte: u8) {
        match self.depth {
            1 => self.member(byte),
            2 => self.has_images |= self.in_images && byte == b'{',
            _ => {}
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.depth == 1 {
                    (self.closed, self.in_usage) = (true, false);
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b'"' => self.lexical = Lexical::String,
            _ => {}
        }
    }

    /// Handles a byte of a top-level member outside of strings.
    fn member(&mut self, byte: u8) {
        match (self.position, byte) {
            (_, b',') => {
                self.position = Position::BeforeName;
                (self.in_images, self.in_usage) = (false, false);
            }
            (Position::BeforeName, b'"') => {
                self.position = Position::Name;
                self.name.clear();
            }
            (Position::BeforeValue, byte) if byte != b':' && !byte.is_ascii_whitespace() => {
                self.position = Position::Value;
                match unescape(&self.name).as_deref() {
                    Some("data") => self.in_images = byte == b'[',
                    // Only `null` starts with this byte.
                    Some("error") => self.has_error |= byte != b'n',
                    Some("usage") => {
                        self.in_usage = byte == b'{';
                        self.usage.clear();
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Appends to the copy of the usage. A usage that is too long is discarded.
    fn push_usage(&mut self, part: &[u8]) {
        if self.in_usage && self.usage.len() + part.len() <= MAX_USAGE {
            self.usage.extend_from_slice(part);
        } else if self.in_usage {
            self.in_usage = false;
            self.usage.clear();
        }
    }

    /// Appends the contents of a string to the name, if it is one.
    fn push_name(&mut self, part: &[u8]) {
        if self.position == Position::Name {
            let room = MAX_NAME.saturating_sub(self.name.len());
            self.name.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    /// Handles the quote that ends a string, or a backslash in it.
    fn quote_or_backslash(&mut self, byte: u8) {
        if byte == b'\\' {
            self.lexical = Lexical::Escape;
            return;
        }
        self.lexical = Lexical::Structure;
        if self.position == Position::Name {
            self.position = Position::BeforeValue;
        }
    }
}

fn unescape(written: &[u8]) -> Option<String> {
    serde_json::from_slice(&[b"\"", written, b"\""].concat()).ok()
}

/// The maximum size of a usage object, in bytes; a few counts take far less.
const MAX_USAGE: usize = 4 << 10;

/// The maximum length of a name that is kept: five letters, all of them escaped, and one more byte,
/// so that a longer name does not match.
const MAX_NAME: usize = 5 * 6 + 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(object: &str, size: usize) -> ImageScanner {
        let mut scanner = ImageScanner::default();
        object
            .as_bytes()
            .chunks(size)
            .for_each(|chunk| scanner.read(chunk));
        scanner
    }

    #[test]
    fn no_part_of_an_object_is_closed_however_it_is_cut() {
        let object = r#" {"a": "}]\"}\\", "b": [{"c": {}}, "\u005c\"", []], "": "{"} "#;
        let end = object.rfind('}').unwrap();
        for length in 0..=object.len() {
            for size in 1..=length.max(1) {
                assert_eq!(
                    read(&object[..length], size).closed,
                    length > end,
                    "{length} bytes by {size}"
                );
            }
        }
    }

    #[test]
    fn outermost_members_are_told_however_they_are_cut() {
        for (object, has_images, has_error) in [
            (r#"{"data":[]}"#, false, false),
            (r#"{"data":["{"],"a":[{}]}"#, false, false),
            (r#"{"data":[ {}]}"#, true, false),
            (
                r#" { "created" : 1 , "usage" : {"error": {}, "data": []} , "data" : [ {"error": 1} ] } "#,
                true,
                false,
            ),
            (r#"{"data":null,"error":null}"#, false, false),
            (
                r#"{"data":{"data":[]},"a":["error",{"error":1}],"b":"error","c":"\"error\":1"}"#,
                false,
                false,
            ),
            (r#"{"error":{"message":"\"data\":[]"}}"#, false, true),
            (r#"{"error" : "no"}"#, false, true),
            (r#"{"error":false,"data":[{}]}"#, true, true),
            (r#"{"data":[{"b64_json":"AAAA"}],"error":{}}"#, true, true),
            (r#"{"a":"\\","error":0}"#, false, true),
            (
                r#"{"\u0065\u0072\u0072\u006f\u0072":0,"\u0064ata":[{}]}"#,
                true,
                true,
            ),
            (
                r#"{"errors":1,"Error":1,"error\\":1,"error\"":1,"\u0065\u0072\u0072\u006f\u0072s":1}"#,
                false,
                false,
            ),
            (
                r#"{"a long name that ends with error":1,"":1}"#,
                false,
                false,
            ),
        ] {
            for size in 1..=object.len() {
                let scanner = read(object, size);
                let found = (scanner.has_images(), scanner.has_error(), scanner.closed);
                assert_eq!(found, (has_images, has_error, true), "{object} by {size}");
            }
        }
    }

    #[test]
    fn the_usage_is_kept_as_it_is_written_however_it_is_cut() {
        let (fits, too_long) = ("x".repeat(MAX_USAGE - 8), "x".repeat(MAX_USAGE - 7));
        for (object, usage) in [
            (
                r#"{"usage":{"a":[1,{"b":"}\"}"}],"c":2},"data":[]}"#,
                r#"{"a":[1,{"b":"}\"}"}],"c":2}"#,
            ),
            (
                r#"{"data":[{"usage":{"a":1}}],"usage" : {"a":2}}"#,
                r#"{"a":2}"#,
            ),
            (r#"{"usage":{"a":1},"usage":{"a":2}}"#, r#"{"a":2}"#),
            (r#"{"usage":null,"used":{}}"#, ""),
            (
                &format!(r#"{{"usage":{{"a":"{fits}"}}}}"#),
                &format!(r#"{{"a":"{fits}"}}"#),
            ),
            (&format!(r#"{{"usage":{{"a":"{too_long}"}}}}"#), ""),
        ] {
            for size in [1, 2, 3, 7, object.len()] {
                assert_eq!(
                    read(object, size).usage,
                    usage.as_bytes(),
                    "{object} by {size}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn texts_of_any_kind_are_no_structure(text: String, key: String, at: prop::sample::Index) {
            let object = serde_json::json!({ key: [text] }).to_string();
            let (first, second) = object.as_bytes().split_at(at.index(object.len()));
            let mut scanner = ImageScanner::default();
            scanner.read(first);
            prop_assert!(!scanner.closed);
            scanner.read(second);
            prop_assert!(scanner.closed);
        }

        #[test]
        fn the_reader_agrees_with_the_parser(
            names in prop::collection::vec(prop_oneof!["data", "error", "[a-z\"\\\\]{0,6}"], 0..5),
            values in prop::collection::vec(prop_oneof!["null", "\\[(\\{\\})?\\]", "\\{\"error\":1\\}", "-1", "\"error\""], 5),
            size in 1..40_usize,
        ) {
            let object: std::collections::BTreeMap<_, serde_json::Value> =
                names.into_iter().zip(values).map(|(name, value)| (name, serde_json::from_str(&value).unwrap())).collect();
            let scanner = read(&serde_json::to_string(&object).unwrap(), size);
            let is_first_image = |data: &serde_json::Value| data.get(0).is_some_and(serde_json::Value::is_object);
            prop_assert_eq!(scanner.has_images(), object.get("data").is_some_and(is_first_image));
            prop_assert_eq!(scanner.has_error(), object.get("error").is_some_and(|error| !error.is_null()));
        }
    }
}
