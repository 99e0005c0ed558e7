//! What the outermost members of a reply with pictures tell, while it comes in pieces, and whether it came to its end.

use memchr::memchr2;

/// Reads along with a JSON object without holding it. Whether it is JSON at all is not judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopLevelScanner {
    depth: u64,
    within: Within,
    /// Where in an outermost member.
    place: Place,
    /// The name of the outermost member, as it is written.
    name: Vec<u8>,
    /// Whether the outermost member is the list of pictures.
    in_pictures: bool,
    has_pictures: bool,
    has_error: bool,
    closed: bool,
    /// The outermost member is `usage`, and is kept.
    in_usage: bool,
    usage: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Within {
    #[default]
    Structure,
    Text,
    /// A backslash in a text was the last byte.
    Escape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    BeforeName,
    Name,
    BeforeValue,
    Value,
}

impl TopLevelScanner {
    /// Reads on.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            let before = bytes;
            bytes = match self.within {
                Within::Structure => {
                    self.structure(first);
                    rest
                }
                // Pictures are long texts: they are passed over at once.
                Within::Text => match memchr2(b'"', b'\\', bytes) {
                    Some(at) => {
                        self.note(&bytes[..at]);
                        self.leave(bytes[at]);
                        &bytes[at + 1..]
                    }
                    None => {
                        self.note(bytes);
                        &[]
                    }
                },
                Within::Escape => {
                    self.note(&[b'\\', first]);
                    self.within = Within::Text;
                    rest
                }
            };
            self.keep(&before[..before.len() - bytes.len()]);
        }
    }

    /// Whether the list of pictures has one, at least begun.
    pub(crate) fn has_pictures(&self) -> bool {
        self.has_pictures
    }

    /// Whether an error was told: an `error` that is not `null`.
    pub(crate) fn has_error(&self) -> bool {
        self.has_error
    }

    /// The JSON of the member `usage`; empty unless it is an object of bounded size.
    pub(crate) fn usage(&self) -> &[u8] {
        &self.usage
    }

    /// Whether the outermost bracket was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    fn structure(&mut self, byte: u8) {
        match self.depth {
            1 => self.member(byte),
            2 => self.has_pictures |= self.in_pictures && byte == b'{',
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
            b'"' => self.within = Within::Text,
            _ => {}
        }
    }

    /// A byte of an outermost member that is within no text.
    fn member(&mut self, byte: u8) {
        match (self.place, byte) {
            (_, b',') => {
                self.place = Place::BeforeName;
                (self.in_pictures, self.in_usage) = (false, false);
            }
            (Place::BeforeName, b'"') => {
                self.place = Place::Name;
                self.name.clear();
            }
            (Place::BeforeValue, byte) if byte != b':' && !byte.is_ascii_whitespace() => {
                self.place = Place::Value;
                match name(&self.name).as_deref() {
                    Some("data") => self.in_pictures = byte == b'[',
                    // Nothing but `null` begins so.
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

    /// Keeps a piece of the usage. One that is too long is dropped.
    fn keep(&mut self, part: &[u8]) {
        if self.in_usage && self.usage.len() + part.len() <= LONGEST_USAGE {
            self.usage.extend_from_slice(part);
        } else if self.in_usage {
            self.in_usage = false;
            self.usage.clear();
        }
    }

    /// More of a text.
    fn note(&mut self, part: &[u8]) {
        if self.place == Place::Name {
            let room = LONGEST_NAME.saturating_sub(self.name.len());
            self.name.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    /// The byte that ends a text, or a backslash.
    fn leave(&mut self, byte: u8) {
        if byte == b'\\' {
            self.within = Within::Escape;
            return;
        }
        self.within = Within::Structure;
        if self.place == Place::Name {
            self.place = Place::BeforeValue;
        }
    }
}

/// What a name means that may be written with escapes.
fn name(written: &[u8]) -> Option<String> {
    serde_json::from_slice(&[b"\"", written, b"\""].concat()).ok()
}

/// The longest usage that is kept; a few counts take far less.
const LONGEST_USAGE: usize = 4 << 10;

/// The longest name that matters: five letters, each of them escaped, and one more byte.
const LONGEST_NAME: usize = 5 * 6 + 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(object: &str, size: usize) -> TopLevelScanner {
        let mut members = TopLevelScanner::default();
        object.as_bytes().chunks(size).for_each(|piece| members.read(piece));
        members
    }

    #[test]
    fn no_part_of_an_object_is_closed_however_it_is_cut() {
        let object = r#" {"a": "}]\"}\\", "b": [{"c": {}}, "\u005c\"", []], "": "{"} "#;
        let end = object.rfind('}').unwrap();
        for length in 0..=object.len() {
            for size in 1..=length.max(1) {
                assert_eq!(read(&object[..length], size).is_closed(), length > end, "{length} bytes by {size}");
            }
        }
    }

    #[test]
    fn outermost_members_are_told_however_they_are_cut() {
        for (object, has_pictures, has_error) in [
            (r#"{"data":[]}"#, false, false),
            (r#"{"data":["{"],"a":[{}]}"#, false, false),
            (r#"{"data":[ {}]}"#, true, false),
            (r#" { "created" : 1 , "usage" : {"error": {}, "data": []} , "data" : [ {"error": 1} ] } "#, true, false),
            (r#"{"data":null,"error":null}"#, false, false),
            (r#"{"data":{"data":[]},"a":["error",{"error":1}],"b":"error","c":"\"error\":1"}"#, false, false),
            (r#"{"error":{"message":"\"data\":[]"}}"#, false, true),
            (r#"{"error" : "no"}"#, false, true),
            (r#"{"error":false,"data":[{}]}"#, true, true),
            (r#"{"data":[{"b64_json":"AAAA"}],"error":{}}"#, true, true),
            (r#"{"a":"\\","error":0}"#, false, true),
            (r#"{"\u0065\u0072\u0072\u006f\u0072":0,"\u0064ata":[{}]}"#, true, true),
            (r#"{"errors":1,"Error":1,"error\\":1,"error\"":1,"\u0065\u0072\u0072\u006f\u0072s":1}"#, false, false),
            (r#"{"a long name that ends with error":1,"":1}"#, false, false),
        ] {
            for size in 1..=object.len() {
                let members = read(object, size);
                let told = (members.has_pictures(), members.has_error(), members.is_closed());
                assert_eq!(told, (has_pictures, has_error, true), "{object} by {size}");
            }
        }
    }

    #[test]
    fn the_usage_is_kept_as_it_is_written_however_it_is_cut() {
        let (fits, too_long) = ("x".repeat(LONGEST_USAGE - 8), "x".repeat(LONGEST_USAGE - 7));
        for (object, usage) in [
            (r#"{"usage":{"a":[1,{"b":"}\"}"}],"c":2},"data":[]}"#, r#"{"a":[1,{"b":"}\"}"}],"c":2}"#),
            (r#"{"data":[{"usage":{"a":1}}],"usage" : {"a":2}}"#, r#"{"a":2}"#),
            (r#"{"usage":{"a":1},"usage":{"a":2}}"#, r#"{"a":2}"#),
            (r#"{"usage":null,"used":{}}"#, ""),
            (&format!(r#"{{"usage":{{"a":"{fits}"}}}}"#), &format!(r#"{{"a":"{fits}"}}"#)),
            (&format!(r#"{{"usage":{{"a":"{too_long}"}}}}"#), ""),
        ] {
            for size in [1, 2, 3, 7, object.len()] {
                assert_eq!(read(object, size).usage(), usage.as_bytes(), "{object} by {size}");
            }
        }
    }

    proptest! {
        #[test]
        fn texts_of_any_kind_are_no_structure(text: String, key: String, at: prop::sample::Index) {
            let object = serde_json::json!({ key: [text] }).to_string();
            let (first, second) = object.as_bytes().split_at(at.index(object.len()));
            let mut members = TopLevelScanner::default();
            members.read(first);
            prop_assert!(!members.is_closed());
            members.read(second);
            prop_assert!(members.is_closed());
        }

        #[test]
        fn the_reader_agrees_with_the_parser(
            names in prop::collection::vec(prop_oneof!["data", "error", "[a-z\"\\\\]{0,6}"], 0..5),
            values in prop::collection::vec(prop_oneof!["null", "\\[(\\{\\})?\\]", "\\{\"error\":1\\}", "-1", "\"error\""], 5),
            size in 1..40_usize,
        ) {
            let object: std::collections::BTreeMap<_, serde_json::Value> =
                names.into_iter().zip(values).map(|(name, value)| (name, serde_json::from_str(&value).unwrap())).collect();
            let members = read(&serde_json::to_string(&object).unwrap(), size);
            let is_first_picture = |data: &serde_json::Value| data.get(0).is_some_and(serde_json::Value::is_object);
            prop_assert_eq!(members.has_pictures(), object.get("data").is_some_and(is_first_picture));
            prop_assert_eq!(members.has_error(), object.get("error").is_some_and(|error| !error.is_null()));
        }
    }
}
