//! Whether a JSON object that comes in pieces has come to its end.

use memchr::memchr2;

/// How deep within objects and lists the bytes so far have led. What is between brackets is not judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nesting {
    depth: u64,
    within: Within,
    closed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Within {
    #[default]
    Structure,
    Text,
    /// A backslash in a text was the last byte.
    Escape,
}

impl Nesting {
    /// Reads on.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            bytes = match self.within {
                Within::Structure => {
                    self.structure(first);
                    rest
                }
                // Pictures are long texts: they are passed over at once.
                Within::Text => match memchr2(b'"', b'\\', bytes) {
                    Some(at) => {
                        self.within = if bytes[at] == b'"' { Within::Structure } else { Within::Escape };
                        &bytes[at + 1..]
                    }
                    None => &[],
                },
                Within::Escape => {
                    self.within = Within::Text;
                    rest
                }
            };
        }
    }

    /// Whether the outermost bracket was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.closed |= self.depth == 1;
                self.depth = self.depth.saturating_sub(1);
            }
            b'"' => self.within = Within::Text,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_part_of_an_object_is_closed_however_it_is_cut() {
        let object = r#" {"a": "}]\"}\\", "b": [{"c": {}}, "\u005c\"", []], "": "{"} "#;
        let end = object.rfind('}').unwrap();
        for length in 0..=object.len() {
            for size in 1..=length.max(1) {
                let mut nesting = Nesting::default();
                object.as_bytes()[..length].chunks(size).for_each(|piece| nesting.read(piece));
                assert_eq!(nesting.is_closed(), length > end, "{length} bytes in pieces of {size}");
            }
        }
    }

    proptest! {
        #[test]
        fn texts_of_any_kind_are_no_structure(text: String, key: String, at: prop::sample::Index) {
            let object = serde_json::json!({ key: [text] }).to_string();
            let (first, second) = object.as_bytes().split_at(at.index(object.len()));
            let mut nesting = Nesting::default();
            nesting.read(first);
            prop_assert!(!nesting.is_closed());
            nesting.read(second);
            prop_assert!(nesting.is_closed());
        }
    }
}
