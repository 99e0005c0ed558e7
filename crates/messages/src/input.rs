//! The input of a call: in a reply a JSON object, in a stream pieces of its text.

use serde_json::json;
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

/// The JSON object that `text` is, if it is one.
#[must_use]
pub(crate) fn object(text: &str) -> Option<Json> {
    serde_json::from_str(text).ok().filter(Json::is_object)
}
