//! JSON as upstreams send it, read leniently.

use engine::EngineError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use wire::Json;

use super::super::failure::Complaint;
use super::MAX_INDEX;

wire::read_objects!(ErrorMarkers);

/// Reads a JSON object. All of it has to be UTF-8, what nobody asks for as well.
pub(super) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, EngineError> {
    if data.trim_ascii_start().first() != Some(&b'{') {
        return Err(malformed("it is no JSON object"));
    }
    let text = std::str::from_utf8(data).map_err(malformed)?;
    serde_json::from_str(text).map_err(|error| malformed(wire::json_fault(&error)))
}

/// The failure of an upstream that does not keep to its protocol.
pub(super) fn malformed(why: impl std::fmt::Display) -> EngineError {
    EngineError::Upstream(format!("malformed event: {why}"))
}

/// A member that an event of this type cannot be without.
pub(super) fn needed<T>(member: Option<T>, kind: &str, name: &str) -> Result<T, EngineError> {
    member.ok_or_else(|| malformed(format!("'{kind}' without '{name}'")))
}

/// An index within the bound.
pub(super) fn bounded(index: u64) -> Result<u32, EngineError> {
    match u32::try_from(index) {
        Ok(small) if index <= MAX_INDEX => Ok(small),
        _ => Err(malformed(format!("the index {index} is above {MAX_INDEX}"))),
    }
}

/// What tells a failure from everything else, and one type of event from another.
#[derive(Deserialize)]
#[serde(remote = "Self")]
pub(super) struct ErrorMarkers {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    object: Option<Value>,
    error: Option<Value>,
}

impl ErrorMarkers {
    /// Reads the signs of an event, or of a whole reply.
    ///
    /// # Errors
    /// What the upstream says of its failure, if this is one.
    pub(super) fn read(data: &[u8]) -> Result<Self, EngineError> {
        let signs: Self = read(data)?;
        if signs.tell_failure() { Err(Complaint::read(data).in_success()) } else { Ok(signs) }
    }

    fn tell_failure(&self) -> bool {
        let told = self.error.as_ref().is_some_and(|error| *error != Value::Bool(false));
        let marked =
            self.kind.as_deref() == Some("error") || self.object.as_ref().is_some_and(|object| object == "error");
        told || marked
    }
}

/// Arguments that are text, as they should be, or the JSON that they say.
pub(super) fn arguments(json: &Json) -> Result<String, EngineError> {
    match json.text() {
        "null" => Ok(String::new()),
        text if text.starts_with('"') => {
            serde_json::from_str(text).map_err(|_| malformed("arguments that are no text"))
        }
        text => Ok(text.to_owned()),
    }
}

/// A member that counts only if it has the right type: what others put there is not for us.
pub(super) fn lenient<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// A number of tokens; some upstreams write them as floats.
pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(from)?;
    // The cast saturates, and what is no number is no count.
    Ok(value.as_u64().or_else(|| value.as_f64().filter(|count| *count >= 0.0).map(|count| count as u64)))
}
