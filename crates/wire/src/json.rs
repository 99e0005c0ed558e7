//! JSON that is carried and not looked into.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// A JSON object whose members keep their order: unknown fields and unknown variants live here.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// Any JSON value, kept as the text it came as: key order, number spelling and all. Only line breaks between its tokens
/// become spaces, so that it can be written as the data of a server-sent event, which is one line.
///
/// Reads from `serde_json` alone, as every type that holds raw text does.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        // Raw text may hold what no value is: half a surrogate pair, a number beyond all bounds.
        if may_be_no_value(raw.get()) {
            serde_json::from_str::<serde_json::Value>(raw.get()).map_err(D::Error::custom)?;
        }
        Ok(Self(on_one_line(raw)))
    }
}

impl Json {
    /// The JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The value as a tree.
    #[must_use]
    pub fn value(&self) -> serde_json::Value {
        // The text was a JSON value when it was taken in; its depth alone can be too much for a tree.
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        // A tree of JSON values always has a text.
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

/// Replaces line breaks by spaces. Within strings they are always escaped, so these stand between tokens.
fn on_one_line(raw: Box<RawValue>) -> Box<RawValue> {
    if !raw.get().bytes().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return raw;
    }
    RawValue::from_string(raw.get().replace(['\r', '\n'], " ")).unwrap_or(raw)
}

/// Whether JSON has an escape, or a number with an exponent or very many digits; or a string that looks like one.
fn may_be_no_value(text: &str) -> bool {
    let mut digits = 0;
    text.bytes().any(|byte| {
        let is_number = digits > 0 && matches!(byte, b'e' | b'E') || digits > MOST_DIGITS;
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        is_number || byte == b'\\'
    })
}

/// A number of so many digits is within bounds.
const MOST_DIGITS: usize = 300;

/// Why JSON could not be read, for the log: without what is cited of it, which may be what a model said.
#[must_use]
pub fn json_fault(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => {
            format!("a member is missing or of the wrong type, at line {} column {}", error.line(), error.column())
        }
        // What is no JSON is told by its place and the rule that it breaks.
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_cites_nothing() {
        let fault = |text| json_fault(&serde_json::from_str::<Vec<u8>>(text).unwrap_err());
        assert_eq!(fault(r#"["told"]"#), "a member is missing or of the wrong type, at line 1 column 7");
        assert_eq!(fault("[told"), "expected ident at line 1 column 3");
    }

    /// What is carried keeps its text, numbers and all.
    #[test]
    fn j03_text_survives() {
        let text = r#"{"b":1.50,"a":1e2,"b2":[ ]}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
    }

    /// The data of a server-sent event is one line, so that a line break within would cut it in two.
    #[test]
    fn line_breaks_between_tokens_become_spaces() {
        let json: Json = serde_json::from_str("{\r\n\t\"a\\nb\":\r[1,\n2]\n}").unwrap();
        assert_eq!(json.text(), "{  \t\"a\\nb\": [1, 2] }");
    }

    /// What is carried is a value, as what is looked into.
    #[test]
    fn j03_j09_text_that_is_no_value_is_refused() {
        let long = "9".repeat(400);
        for text in [r#"{"a":1e400}"#, "-1E400", r#"["\ud800"]"#, r#"{"\udc00\ud800":0}"#, &long, &format!("[{long}]")]
        {
            assert!(serde_json::from_str::<Json>(text).is_err(), "{text}");
        }
        for text in [r#"{"a":1e300}"#, "1E-400", r#"["\ud83d\ude00", "1e400"]"#, &"9".repeat(300)] {
            assert!(serde_json::from_str::<Json>(text).is_ok(), "{text}");
        }
    }
}
