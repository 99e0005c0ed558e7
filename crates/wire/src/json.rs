//! Opaque JSON values, kept as raw text.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// A JSON object that preserves member order; used for unknown fields and unknown variants.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// Any JSON value, kept as its original text, which preserves key order and number formatting. Only
/// line breaks between tokens, with the indentation after them, are replaced by a space, so that
/// the value can be written as the single-line data of a server-sent event.
///
/// Like every type that holds a `RawValue`, it deserializes from `serde_json` only.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        // `RawValue` accepts text that is not a valid value: a lone surrogate, or a number that is
        // out of range.
        if needs_validation(raw.get()) {
            serde_json::from_str::<serde_json::Value>(raw.get()).map_err(D::Error::custom)?;
        }
        Ok(Self(on_one_line(raw)))
    }
}

impl Json {
    /// Returns the JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Parses the text into a [`serde_json::Value`].
    #[must_use]
    pub fn value(&self) -> serde_json::Value {
        // The text was validated on construction; parsing can fail only on excessive depth.
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    /// Returns true if the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }

    /// Returns true if the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        // Serializing a `Value` cannot fail.
        Self(serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self::from(&value)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() || self.value() == other.value()
    }
}

impl JsonSchema for Json {
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Replaces every line break, and the indentation after it, by a space. Line breaks are escaped
/// within strings, so these can only stand between tokens.
fn on_one_line(raw: Box<RawValue>) -> Box<RawValue> {
    if !raw.get().bytes().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return raw;
    }
    let lines = raw
        .get()
        .split(['\r', '\n'])
        .map(|line| line.trim_start_matches([' ', '\t']));
    let text = lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    RawValue::from_string(text).unwrap_or(raw)
}

/// Returns true if JSON text contains an escape, an exponent or a very long number (possibly inside
/// a string).
///
/// Other raw text is always a valid value, so it need not be parsed.
fn needs_validation(text: &str) -> bool {
    let mut digits = 0;
    text.bytes().any(|byte| {
        let is_number = digits > 0 && matches!(byte, b'e' | b'E') || digits > MAX_DIGITS;
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        is_number || byte == b'\\'
    })
}

/// Numbers with at most this many digits are within the range of an `f64`.
const MAX_DIGITS: usize = 300;

/// Deserializes null as the default.
///
/// For `#[serde(default, deserialize_with = "wire::or_default")]`.
///
/// # Errors
/// Returns an error if the value is neither null nor a `T`.
pub fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Describes a JSON error for the log without quoting the document, which may contain model output.
#[must_use]
pub fn json_fault(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => {
            format!(
                "a member is missing or of the wrong type, at line {} column {}",
                error.line(),
                error.column()
            )
        }
        // Syntax errors name only a position and the violated rule.
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_cites_nothing() {
        let fault = |text| json_fault(&serde_json::from_str::<Vec<u8>>(text).unwrap_err());
        assert_eq!(
            fault(r#"["told"]"#),
            "a member is missing or of the wrong type, at line 1 column 7"
        );
        assert_eq!(fault("[told"), "expected ident at line 1 column 3");
    }

    /// Opaque JSON keeps its exact text, including the formatting of numbers.
    #[test]
    fn j03_text_survives() {
        let text = r#"{"b":1.50,"a":1e2,"b2":[ ]}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
    }

    /// The data of a server-sent event is one line, so a raw line break would split the event.
    #[test]
    fn line_breaks_between_tokens_become_spaces() {
        let json: Json = serde_json::from_str("{\r\n\t\"a\\nb\":\r[1,\n2]\n}").unwrap();
        assert_eq!(json.text(), "{ \"a\\nb\": [1, 2] }");
    }

    /// Opaque JSON must be a valid JSON value, like parsed JSON.
    #[test]
    fn j03_j09_text_that_is_no_value_is_refused() {
        let long = "9".repeat(400);
        for text in [
            r#"{"a":1e400}"#,
            "-1E400",
            r#"["\ud800"]"#,
            r#"{"\udc00\ud800":0}"#,
            &long,
            &format!("[{long}]"),
        ] {
            assert!(serde_json::from_str::<Json>(text).is_err(), "{text}");
        }
        for text in [
            r#"{"a":1e300}"#,
            "1E-400",
            r#"["\ud83d\ude00", "1e400"]"#,
            &"9".repeat(300),
        ] {
            assert!(serde_json::from_str::<Json>(text).is_ok(), "{text}");
        }
    }
}
