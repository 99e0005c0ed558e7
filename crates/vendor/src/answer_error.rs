//! Failures that are read from the answers of model servers, or found in them.

use std::fmt::Display;

use engine::{EngineError, Usage};
use serde::Deserialize;
use serde_json::Value;
use wire::lenient::{ReadError, Tokens};

use crate::failure::Complaint;

wire::read_objects!(ErrorMarkers);

/// Parses a JSON object. All of it has to be valid UTF-8, including members that are ignored.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, EngineError> {
    if data.trim_ascii_start().first() != Some(&b'{') {
        return Err(malformed("not a JSON object"));
    }
    serde_json::from_str(text(data)?).map_err(|error| malformed(wire::json_fault(&error)))
}

/// Returns an event or a reply as text.
///
/// # Errors
/// When it is not UTF-8.
pub fn text(data: &[u8]) -> Result<&str, EngineError> {
    std::str::from_utf8(data).map_err(malformed)
}

/// The failure for an event that is not valid in its protocol.
#[must_use]
pub fn malformed(why: impl Display) -> EngineError {
    EngineError::Upstream(format!("malformed event: {why}"))
}

/// The failure for a stream that ends early.
#[must_use]
pub fn truncated() -> EngineError {
    EngineError::Truncated("the stream ended without a terminal event".to_owned())
}

/// The failure for an answer that cannot be read to its end.
#[must_use]
pub fn engine_error(error: ReadError) -> EngineError {
    match error {
        ReadError::Reported(json) => Complaint::read(json.as_bytes()).in_success(),
        ReadError::Truncated => EngineError::Truncated(error.to_string()),
        error => EngineError::Upstream(error.to_string()),
    }
}

/// The failure for a plain reply that could not be read for this reason. Some servers report an
/// error with status 200 as a body of their own that is neither a reply nor an error of the
/// protocol.
#[must_use]
pub fn unreadable(body: &[u8], error: EngineError) -> EngineError {
    match error {
        EngineError::Upstream(_) | EngineError::Truncated(_) => {
            Complaint::read(body).in_unreadable().unwrap_or(error)
        }
        error => error,
    }
}

/// The token counts of an answer.
#[must_use]
pub fn usage(tokens: Tokens) -> Usage {
    let Tokens {
        input,
        cache_read,
        cache_write,
        cache_write_1h,
        audio_input,
        image_input,
        output,
        reasoning,
        audio_output,
        image_output,
        service_tier,
    } = tokens;
    Usage {
        input,
        cache_read,
        cache_write,
        cache_write_1h,
        audio_input,
        image_input,
        output,
        reasoning,
        audio_output,
        image_output,
        service_tier,
    }
}

/// The members that identify an error and the type of an event.
#[derive(Deserialize)]
#[serde(remote = "Self")]
pub struct ErrorMarkers {
    #[serde(rename = "type")]
    /// The type.
    pub kind: Option<String>,
    object: Option<Value>,
    error: Option<Value>,
}

impl ErrorMarkers {
    /// Parses the markers of an event or a complete reply.
    ///
    /// # Errors
    /// The failure that the upstream reports, if any.
    pub fn read(data: &[u8]) -> Result<Self, EngineError> {
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
