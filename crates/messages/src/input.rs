//! The input of a call: a JSON object in a message, fragments of its text in a stream.

use serde_json::json;
use serde_json::value::RawValue;
use wire::Json;

use crate::arguments::RAW;

/// Parses the input that the model wrote. Blank text becomes `{}`; anything else that is not a JSON
/// object is kept as `{"_raw": text}`.
#[must_use]
pub(crate) fn input(text: &str) -> Json {
    if text.trim().is_empty() {
        return json!({}).into();
    }
    // An object that is valid by the grammar may have no value: with a lone surrogate, or with a
    // number out of range.
    let object = serde_json::from_str(text).ok().filter(Json::is_object);
    object.unwrap_or_else(|| json!({ RAW: text }).into())
}

/// Returns true if `text` is an object by the grammar of JSON (RFC 8259), the same grammar that
/// streamed fragments follow.
#[must_use]
pub(crate) fn is_object(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok_and(|value| value.get().starts_with('{'))
}
