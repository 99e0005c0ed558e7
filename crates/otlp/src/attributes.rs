//! The attributes of a span that is being written.

use config::traces::Semconv;

use crate::fields::Fields;
use crate::names::Name;

/// The attributes of a span, with the names of a version of the conventions. They are written with the tags of
/// [`KeyValue`](crate::messages::KeyValue) and of its values.
pub(crate) struct Attributes<'a> {
    semconv: Semconv,
    span: &'a mut Vec<u8>,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Bool(bool),
    Int(u64),
    Double(f64),
}

impl<'a> Attributes<'a> {
    /// Adds attributes to a span.
    pub(crate) fn new(semconv: Semconv, span: &'a mut Vec<u8>) -> Self {
        Self { semconv, span }
    }

    /// Adds an attribute, if this version of the conventions has it.
    pub(crate) fn set<'v>(&mut self, name: Name, value: impl Into<Value<'v>>) {
        match value.into() {
            Value::Text(text) => self.set_text(name, text),
            value => self.add(name, |to| value.write(to)),
        }
    }

    /// Adds a text. Most attributes are short ones, whose four lengths have a byte each.
    fn set_text(&mut self, name: Name, text: &str) {
        let Some(key) = name.of(self.semconv) else {
            return;
        };
        if key.len() + text.len() > MAX_SHORT {
            return self.add(name, |to| Value::Text(text).write(to));
        }
        let [key_length, text_length] = [key.len() as u8, text.len() as u8];
        let pair_length = key_length + text_length + 6;
        self.span.reserve(usize::from(pair_length) + 2);
        self.span
            .extend_from_slice(&[PAIR, pair_length, KEY, key_length]);
        self.span.extend_from_slice(key.as_bytes());
        self.span
            .extend_from_slice(&[VALUE, text_length + 2, TEXT, text_length]);
        self.span.extend_from_slice(text.as_bytes());
    }

    /// Adds an attribute, if its value is known.
    pub(crate) fn set_known<'v>(&mut self, name: Name, value: Option<impl Into<Value<'v>>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Adds a list, unless it is empty.
    pub(crate) fn set_list<'v>(&mut self, name: Name, texts: impl IntoIterator<Item = &'v String>) {
        let mut texts = texts.into_iter().peekable();
        if texts.peek().is_none() {
            return;
        }
        self.add(name, |value| {
            value.message(5, |list| {
                for text in texts {
                    list.message(1, |to| Value::Text(text).write(to));
                }
            });
        });
    }

    /// Adds an attribute with the value that `write` writes, if this version of the conventions has it.
    fn add(&mut self, name: Name, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(name) = name.of(self.semconv) {
            self.span.message(9, |pair| {
                pair.bytes(1, name.as_bytes());
                pair.message(2, write);
            });
        }
    }
}

impl Value<'_> {
    fn write(self, to: &mut Vec<u8>) {
        match self {
            Self::Text(text) => to.bytes(1, text.as_bytes()),
            Self::Bool(value) => to.varint(2, u64::from(value)),
            Self::Int(number) => to.varint(3, number),
            Self::Double(number) => to.double(4, number),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// Numbers above the greatest one of `int64` are that one.
impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Int(number.min(i64::MAX as u64))
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Double(number)
    }
}

/// The maximum length of a name and a text whose fields have lengths of one byte, with the six bytes around them.
const MAX_SHORT: usize = 0x7f - 6;
/// The tag of an attribute of a span, with the type of fields that begin with their length.
const PAIR: u8 = 9 << 3 | 2;
/// The tag of the name.
const KEY: u8 = 1 << 3 | 2;
/// The tag of the value.
const VALUE: u8 = 2 << 3 | 2;
/// The tag of a text in the value.
const TEXT: u8 = 1 << 3 | 2;

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::messages::{self, Span};
    use crate::names;

    /// The lengths at which a field needs another byte for its length.
    #[test]
    fn texts_and_lists_of_every_length_are_read_back() {
        for length in (0..300).chain(16_200..16_400) {
            let text = "a".repeat(length);
            let mut span = Vec::new();
            let mut attributes = Attributes::new(Semconv::V2026_10, &mut span);
            attributes.set(names::KEY, text.as_str());
            attributes.set_list(names::DROPPED, [&text, &text]);
            let [one, list] = Span::decode(span.as_slice())
                .unwrap()
                .attributes
                .try_into()
                .unwrap();
            assert_eq!(one.key, "sluicegate.key");
            let expected = messages::Value::String(text.into());
            assert_eq!(one.value.unwrap().value.as_ref(), Some(&expected));
            let Some(messages::Value::Array(list)) = list.value.unwrap().value else {
                panic!("{length}");
            };
            let values: Vec<_> = list.values.into_iter().map(|it| it.value).collect();
            assert_eq!(values, [Some(expected.clone()), Some(expected)]);
        }
    }
}
