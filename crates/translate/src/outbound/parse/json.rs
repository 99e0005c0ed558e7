//! Lenient parsing of the JSON that upstreams send.

use engine::EngineError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use wire::Json;

use super::super::failure::Complaint;
use super::MAX_INDEX;
use crate::error::malformed;

/// Parses a JSON object. All of it has to be valid UTF-8, including members that are ignored.
pub(super) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, EngineError> {
    if data.trim_ascii_start().first() != Some(&b'{') {
        return Err(malformed("not a JSON object"));
    }
    let text = std::str::from_utf8(data).map_err(malformed)?;
    serde_json::from_str(text).map_err(|error| malformed(wire::json_fault(&error)))
}

/// Returns a required member of an event of type `kind`.
pub(super) fn needed<T>(member: Option<T>, kind: &str, name: &str) -> Result<T, EngineError> {
    member.ok_or_else(|| malformed(format!("'{kind}' without '{name}'")))
}

/// Checks that an index is within [`MAX_INDEX`].
pub(super) fn bounded(index: u64) -> Result<u32, EngineError> {
    match u32::try_from(index) {
        Ok(small) if index <= MAX_INDEX => Ok(small),
        _ => Err(malformed(format!("the index {index} exceeds {MAX_INDEX}"))),
    }
}

wire::read_objects! {
    /// The members that identify an error and the type of an event.
    pub(super) struct ErrorMarkers {
        #[serde(rename = "type")]
        pub(super) kind: Option<String>,
        object: Option<Value>,
        error: Option<Value>,
    }
}

impl ErrorMarkers {
    /// Parses the markers of an event or a complete reply.
    ///
    /// # Errors
    /// The failure that the upstream reports, if any.
    pub(super) fn read(data: &[u8]) -> Result<Self, EngineError> {
        let markers: Self = read(data)?;
        if markers.is_error() {
            Err(Complaint::read(data).in_success())
        } else {
            Ok(markers)
        }
    }

    fn is_error(&self) -> bool {
        let has_error = self
            .error
            .as_ref()
            .is_some_and(|error| *error != Value::Bool(false));
        let is_marked = self.kind.as_deref() == Some("error")
            || self.object.as_ref().is_some_and(|object| object == "error");
        has_error || is_marked
    }
}

/// Returns the arguments of a call. They should be a string; other JSON is returned as its text.
pub(super) fn arguments(json: &Json) -> Result<String, EngineError> {
    match json.text() {
        "null" => Ok(String::new()),
        text if text.starts_with('"') => serde_json::from_str(text)
            .map_err(|_| malformed("the arguments are not a valid JSON string")),
        text => Ok(text.to_owned()),
    }
}

/// Deserializes a member, ignoring a value of another type: servers use such members for other
/// purposes.
pub(super) fn lenient<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// Returns the number of tokens at `path`, a JSON pointer, in a usage; some upstreams write it as a
/// float.
pub(super) fn count(usage: &Value, path: &str) -> Option<u64> {
    let value = usage.pointer(path)?;
    // The cast saturates; values that are not numbers are ignored.
    value.as_u64().or_else(|| {
        value
            .as_f64()
            .filter(|count| *count >= 0.0)
            .map(|count| count as u64)
    })
}
