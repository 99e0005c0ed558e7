//! The input of a call: in a reply a JSON object, in a stream pieces of its text.

use serde_json::json;
use serde_json::value::RawValue;
use wire::{Json, Object};

use crate::arguments::RAW;

/// The input that a model wrote as `text`. Nothing is `{}`; what is no object is kept as `{"_raw": text}`
/// (wire-reference §9.2).
#[must_use]
pub(crate) fn input(text: &str) -> Json {
    if text.trim().is_empty() {
        return Json::from(serde_json::Value::from(Object::new()));
    }
    object(text).unwrap_or_else(|| Json::from(json!({ RAW: text })))
}

/// The JSON object that `text` is, if it is one, and a value: it may hold half a character, or a number beyond all
/// bounds.
fn object(text: &str) -> Option<Json> {
    serde_json::from_str(text).ok().filter(Json::is_object)
}

/// Whether `text` is an object by the grammar of JSON (RFC 8259), as its pieces are held to be.
#[must_use]
pub(crate) fn is_object(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok_and(|value| value.get().starts_with('{'))
}
