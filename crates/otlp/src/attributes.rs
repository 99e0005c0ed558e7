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
        let value = value.into();
        self.add(name, |to| value.write(to));
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
