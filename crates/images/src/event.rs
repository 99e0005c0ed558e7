//! The events of a stream: named server-sent events (spec §6.3, wire-reference §4.3).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sse::EventName;
use wire::{ErrorBody, Object};

use crate::request::{Background, OutputFormat, Quality};
use crate::response::Usage;

wire::tagged! {
    /// One event of a stream.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event("type") {
        /// A preview of a picture from a prompt.
        GenerationPreview(Preview) = "image_generation.partial_image",
        /// A picture from a prompt.
        GenerationCompleted(Completed) = "image_generation.completed",
        /// A preview of a picture from pictures.
        EditPreview(Preview) = "image_edit.partial_image",
        /// A picture from pictures.
        EditCompleted(Completed) = "image_edit.completed",
        /// The failure that ends a stream.
        Error(ErrorBody) = "error",
    }
}

impl Event {
    /// Reads the data of a server-sent event.
    ///
    /// # Errors
    /// When it is no JSON object with a type, or one that does not fit its type.
    pub fn read(data: &str) -> Result<Self, EventError> {
        serde_json::from_str(data).map_err(|error| EventError(wire::json_fault(&error)))
    }

    /// The name of the server-sent event: its type. A foreign type may be a text that cannot be a name.
    #[must_use]
    pub fn name(&self) -> Option<EventName<'_>> {
        EventName::new(self.kind()).ok()
    }

    /// The data of the server-sent event: one line of JSON.
    #[must_use]
    pub fn data(&self) -> String {
        // These types always have a JSON form: their keys are strings and their numbers finite.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Appends the event as it goes over the wire.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.picture().len() + ENVELOPE);
        sse::encode(self.name(), "", out);
        // The JSON, one line of possibly megabytes, is written in place: between an event without data and its end.
        out.truncate(out.len() - END.len());
        let written = serde_json::to_writer(&mut *out, self);
        debug_assert!(written.is_ok(), "an event always has a JSON form");
        out.extend_from_slice(END);
    }

    /// Whether a stream ends with this event whatever was asked for: a failure. How many pictures end it well is
    /// known to the [`Grammar`](crate::Grammar).
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// The base64 of the picture or preview; empty when there is none.
    fn picture(&self) -> &str {
        match self {
            Self::GenerationPreview(preview) | Self::EditPreview(preview) => &preview.b64_json,
            Self::GenerationCompleted(completed) | Self::EditCompleted(completed) => &completed.b64_json,
            Self::Error(_) | Self::Other(_) => "",
        }
    }
}

/// A server-sent event that is none of this protocol; the text says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventError(String);

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no images event: {}", self.0)
    }
}

impl std::error::Error for EventError {}

/// A picture on its way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Preview {
    /// The file in base64.
    pub b64_json: String,
    /// The preview's place among those of its picture, from 0.
    pub partial_image_index: u32,
    /// When it was made, in Unix seconds.
    pub created_at: i64,
    /// Width and height in pixels.
    pub size: String,
    /// How much effort is spent.
    pub quality: Quality,
    /// What is behind what is seen.
    pub background: Background,
    /// The encoding.
    pub output_format: OutputFormat,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A picture that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completed {
    /// The file in base64.
    pub b64_json: String,
    /// A UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_id: Option<String>,
    /// When it was made, in Unix seconds.
    pub created_at: i64,
    /// Width and height in pixels, as made.
    pub size: String,
    /// How much effort was spent.
    pub quality: Quality,
    /// What is behind what is seen.
    pub background: Background,
    /// The encoding.
    pub output_format: OutputFormat,
    /// This picture's share of what the request took; the shares add up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// The end of a server-sent event after its data.
const END: &[u8] = b"\n\n";
/// Room for all of an event but its picture.
const ENVELOPE: usize = 1024;
