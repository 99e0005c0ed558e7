//! An incremental recognizer of prefixes of JSON objects (RFC 8259), which can also complete them.

#[derive(Debug, Default, PartialEq)]
pub(super) struct Prefix {
    /// The closing brackets of the open objects and arrays, innermost last.
    open: Vec<u8>,
    next: Next,
}

/// The bytes that may come next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Next {
    /// The opening brace.
    #[default]
    Object,
    /// A key, or the end of an object that has just been opened.
    FirstKey,
    /// A key.
    Key,
    /// The colon after a key.
    Colon,
    /// A value, or the end of an array that has just been opened.
    FirstValue,
    /// A value.
    Value,
    /// More of a string.
    Text(Role),
    /// The character after a backslash.
    Escape(Role),
    /// The given number of hexadecimal digits.
    Hex(Role, u8),
    /// The rest of `true`, `false` or `null`.
    Word(&'static str),
    /// A mandatory digit: after a sign, a decimal point, or the sign of an exponent.
    Digit(Number),
    /// More of a number, or its end.
    Number(Number),
    /// The exponent's sign or first digit.
    Exponent,
    /// A comma, or the end of the innermost object or array.
    Comma,
    /// Only whitespace: the object has ended.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Key,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    /// After a leading zero: no further digit.
    Zero,
    Integer,
    Fraction,
    Exponent,
}

impl Prefix {
    /// Consumes the next byte if it is valid here; otherwise changes nothing and returns false.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let after = match self.next {
            Next::Text(_) | Next::Escape(_) | Next::Hex(..) => self.after_text(byte),
            Next::Word(_) | Next::Digit(_) | Next::Exponent => self.after_token(byte),
            Next::Number(number) => after_number(number, byte).or_else(|| self.after_value(byte)),
            Next::Comma => self.after_value(byte),
            _ if is_blank(byte) => Some(self.next),
            _ => self.after_mark(byte),
        };
        self.next = after.unwrap_or(self.next);
        after.is_some()
    }

    /// Returns true if the opening brace was consumed.
    pub(super) fn is_started(&self) -> bool {
        self.next != Next::Object
    }

    /// Returns the text to which one more field and a brace are appended to complete the object;
    /// `None` if it is complete.
    pub(super) fn closing(&self) -> Option<String> {
        if self.next == Next::Nothing {
            return None;
        }
        let mut closing = self.rest_of_token();
        if self.open.len() > 1 && self.next == Next::Key {
            closing.push_str("\"\":null");
        }
        closing.extend(self.open.iter().skip(1).rev().map(|end| char::from(*end)));
        let is_first = self.open.len() == 1 && matches!(self.next, Next::FirstKey | Next::Key);
        if self.is_started() && !is_first {
            closing.push(',');
        }
        Some(closing)
    }

    /// Returns the text that completes the open key or value.
    fn rest_of_token(&self) -> String {
        let end = |role| if role == Role::Key { "\":null" } else { "\"" };
        match self.next {
            Next::Object => "{".to_owned(),
            Next::Colon => ":null".to_owned(),
            Next::Value => "null".to_owned(),
            Next::Text(role) => end(role).to_owned(),
            Next::Escape(role) => format!("\\{}", end(role)),
            Next::Hex(role, left) => "0".repeat(left.into()) + end(role),
            Next::Word(rest) => rest.to_owned(),
            Next::Digit(_) | Next::Exponent => "0".to_owned(),
            Next::FirstKey
            | Next::Key
            | Next::FirstValue
            | Next::Number(_)
            | Next::Comma
            | Next::Nothing => String::new(),
        }
    }

    fn after_text(&self, byte: u8) -> Option<Next> {
        match (self.next, byte) {
            (Next::Text(Role::Key), b'"') => Some(Next::Colon),
            (Next::Text(Role::Value), b'"') => Some(Next::Comma),
            (Next::Text(role), b'\\') => Some(Next::Escape(role)),
            (Next::Text(_), b' '..) => Some(self.next),
            (Next::Escape(role), b'u') => Some(Next::Hex(role, 4)),
            (Next::Escape(role), b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                Some(Next::Text(role))
            }
            (Next::Hex(role, 1), _) if byte.is_ascii_hexdigit() => Some(Next::Text(role)),
            (Next::Hex(role, left), _) if byte.is_ascii_hexdigit() => {
                Some(Next::Hex(role, left - 1))
            }
            _ => None,
        }
    }

    fn after_token(&self, byte: u8) -> Option<Next> {
        match (self.next, byte) {
            (Next::Word(rest), _) => match rest.strip_prefix(char::from(byte))? {
                "" => Some(Next::Comma),
                rest => Some(Next::Word(rest)),
            },
            (Next::Digit(Number::Integer), b'0') => Some(Next::Number(Number::Zero)),
            (Next::Digit(number), b'0'..=b'9') => Some(Next::Number(number)),
            (Next::Exponent, b'+' | b'-') => Some(Next::Digit(Number::Exponent)),
            (Next::Exponent, b'0'..=b'9') => Some(Next::Number(Number::Exponent)),
            _ => None,
        }
    }

    /// Returns the next state after a complete value.
    fn after_value(&mut self, byte: u8) -> Option<Next> {
        match (byte, self.open.last()) {
            (b',', Some(b'}')) => Some(Next::Key),
            (b',', Some(b']')) => Some(Next::Value),
            (b'}' | b']', _) => self.end(byte),
            _ => is_blank(byte).then_some(Next::Comma),
        }
    }

    /// Returns the next state between keys, values and punctuation.
    fn after_mark(&mut self, byte: u8) -> Option<Next> {
        match (self.next, byte) {
            (Next::Object, b'{') => self.begin(b'}', Next::FirstKey),
            (Next::FirstKey | Next::Key, b'"') => Some(Next::Text(Role::Key)),
            (Next::Colon, b':') => Some(Next::Value),
            (Next::FirstKey, b'}') | (Next::FirstValue, b']') => self.end(byte),
            (Next::FirstValue | Next::Value, _) => self.value(byte),
            _ => None,
        }
    }

    /// Returns the next state after the first byte of a value.
    fn value(&mut self, byte: u8) -> Option<Next> {
        match byte {
            b'{' => self.begin(b'}', Next::FirstKey),
            b'[' => self.begin(b']', Next::FirstValue),
            b'"' => Some(Next::Text(Role::Value)),
            b't' => Some(Next::Word("rue")),
            b'f' => Some(Next::Word("alse")),
            b'n' => Some(Next::Word("ull")),
            b'-' => Some(Next::Digit(Number::Integer)),
            b'0' => Some(Next::Number(Number::Zero)),
            b'1'..=b'9' => Some(Next::Number(Number::Integer)),
            _ => None,
        }
    }

    fn begin(&mut self, end: u8, next: Next) -> Option<Next> {
        self.open.push(end);
        Some(next)
    }

    fn end(&mut self, byte: u8) -> Option<Next> {
        self.open.pop_if(|end| *end == byte)?;
        Some(if self.open.is_empty() {
            Next::Nothing
        } else {
            Next::Comma
        })
    }
}

fn after_number(number: Number, byte: u8) -> Option<Next> {
    match (number, byte) {
        (Number::Zero | Number::Integer, b'.') => Some(Next::Digit(Number::Fraction)),
        (Number::Zero | Number::Integer | Number::Fraction, b'e' | b'E') => Some(Next::Exponent),
        (Number::Integer | Number::Fraction | Number::Exponent, b'0'..=b'9') => {
            Some(Next::Number(number))
        }
        _ => None,
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Returns how many bytes of the text are a valid prefix of an object, and that prefix
    /// completed.
    fn ended(text: &str) -> (usize, String) {
        let mut prefix = Prefix::default();
        let taken = text.bytes().take_while(|byte| prefix.take(*byte)).count();
        let rest = prefix
            .closing()
            .map(|closing| closing + "\"_raw\":1}")
            .unwrap_or_default();
        (taken, text[..taken].to_owned() + &rest)
    }

    #[test]
    fn what_cannot_follow_is_not_taken() {
        for text in [
            "[",
            "\"",
            "{,",
            "{1",
            "{\"a\",",
            "{\"a\":,",
            "{\"a\":]",
            "{\"a\":1]",
            "{\"a\":[}",
            "{\"a\":[1,]",
            "{\"a\":1,}",
            "{\"a\\x",
            "{\"a\\u00g",
            "{\"a\n",
            "{\"a\":tru ",
            "{\"a\":01",
            "{\"a\":-a",
            "{\"a\":1.e",
            "{\"a\":1e,",
            "{\"a\":+",
            "{\"a\":1 2",
            "{}{",
            "{} x",
            "{\"a\":\u{e9}",
        ] {
            assert_eq!(
                ended(text).0,
                text.char_indices().next_back().map_or(0, |(at, _)| at),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_open_is_ended_in_the_shortest_way() {
        for (text, completed) in [
            ("", "{\"_raw\":1}"),
            (" {", " {\"_raw\":1}"),
            ("{\"a", "{\"a\":null,\"_raw\":1}"),
            ("{\"a\":[{\"b\":-", "{\"a\":[{\"b\":-0}],\"_raw\":1}"),
            ("{\"a\":\"\\u1", "{\"a\":\"\\u1000\",\"_raw\":1}"),
            ("{\"a\":1,", "{\"a\":1,\"_raw\":1}"),
            ("{\"a\":{\"b\":1,", "{\"a\":{\"b\":1,\"\":null},\"_raw\":1}"),
            ("{\"a\":\"\\", "{\"a\":\"\\\\\",\"_raw\":1}"),
            ("{\"a\":fal", "{\"a\":false,\"_raw\":1}"),
            ("{} ", "{} "),
        ] {
            assert_eq!(ended(text), (text.len(), completed.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn every_object_is_taken_and_however_it_is_cut_it_is_ended(
            value in strategies::json_value(),
            at in any::<prop::sample::Index>(),
        ) {
            let text = json!({"a": value, "b\n": [1.5e300, -0.25, {"": [], "\u{e9}": {}}]}).to_string();
            prop_assert_eq!(ended(&text), (text.len(), text.clone()));
            let end = (0..=at.index(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            let (taken, completed) = ended(&text[..end]);
            prop_assert_eq!(taken, end);
            prop_assert_eq!(&serde_json::from_str::<Value>(&completed).map_err(|error| TestCaseError::fail(format!("{error} {completed}")))?["_raw"], 1);
        }

        #[test]
        fn whatever_comes_is_ended_as_an_object(text in "\\{?[\\[\\]{}:,\"\\\\a0-2e.+\\-\u{e9}tru ]{0,12}") {
            let (_, completed) = ended(&text);
            let read = serde_json::from_str::<Box<serde_json::value::RawValue>>(&completed);
            prop_assert!(read.is_ok(), "{}", completed);
            let is_object = serde_json::from_str::<wire::Json>(&text).is_ok_and(|value| value.is_object());
            prop_assert_eq!(is_object, ended(&text).0 == text.len() && completed == text);
        }
    }
}
