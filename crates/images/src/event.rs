//! The events of a stream: named server-sent events. See
//! <https://platform.openai.com/docs/api-reference/images-streaming>.

use sse::EventName;
use wire::{ErrorBody, EventError};

use crate::request::{Background, OutputFormat, Quality};
use crate::response::Usage;

wire::tagged! {
    /// One event of a stream.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event("type") {
        /// A preview of a generated image.
        GenerationPreview(Preview) = "image_generation.partial_image",
        /// A generated image.
        GenerationCompleted(Completed) = "image_generation.completed",
        /// A preview of an edited image.
        EditPreview(Preview) = "image_edit.partial_image",
        /// An edited image.
        EditCompleted(Completed) = "image_edit.completed",
        /// Terminal event: the request failed.
        Error(ErrorBody) = "error",
    }
}

impl Event {
    /// Parses the data of a server-sent event.
    ///
    /// # Errors
    /// Returns an error if `data` is not a JSON object with a `type`, or does not match the schema
    /// of its type.
    pub fn read(data: &str) -> Result<Self, EventError> {
        wire::read_event("Images", data)
    }

    /// Returns the name of the server-sent event: its type, unless an unrecognized type is not a
    /// valid name.
    #[must_use]
    pub fn name(&self) -> Option<EventName<'_>> {
        EventName::new(self.kind()).ok()
    }

    /// Returns the data of the server-sent event: one line of JSON.
    #[must_use]
    pub fn data(&self) -> String {
        // Serializing these types cannot fail: their keys are strings and their numbers are finite.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Appends the event in its wire format.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_in_place(self.name(), self.image_base64().len(), out, |out| {
            let written = serde_json::to_writer(out, self);
            debug_assert!(written.is_ok(), "serializing an event cannot fail");
        });
    }

    /// Returns the base64 of the image or preview; empty for any other event.
    fn image_base64(&self) -> &str {
        match self {
            Self::GenerationPreview(preview) | Self::EditPreview(preview) => &preview.b64_json,
            Self::GenerationCompleted(completed) | Self::EditCompleted(completed) => {
                &completed.b64_json
            }
            Self::Error(_) | Self::Other(_) => "",
        }
    }
}

/// Appends an event whose JSON `write` appends, with an image of this size. It may be a line of
/// several megabytes, so it is written in place: between an event without data and its end.
pub(crate) fn write_in_place(
    name: Option<EventName<'_>>,
    size: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    out.reserve(size + ENVELOPE);
    sse::encode(name, "", out);
    out.truncate(out.len() - END.len());
    write(out);
    out.extend_from_slice(END);
}

wire::open_structs! {
    /// A preview of an image.
    pub struct Preview {
        /// The file as base64.
        pub b64_json: String,
        /// Index of the preview among the previews of its image, from 0.
        pub partial_image_index: u32,
        /// Creation time, in Unix seconds.
        pub created_at: i64,
        /// Width and height in pixels.
        pub size: String,
        /// The quality.
        pub quality: Quality,
        /// The background of the image.
        pub background: Background,
        /// The file format.
        pub output_format: OutputFormat,
    }

    /// A completed image.
    pub struct Completed {
        /// The file as base64.
        pub b64_json: String,
        /// A UUID.
        pub generation_id: Option<String>,
        /// Creation time, in Unix seconds.
        pub created_at: i64,
        /// Actual width and height in pixels.
        pub size: String,
        /// The quality.
        pub quality: Quality,
        /// The background of the image.
        pub background: Background,
        /// The file format.
        pub output_format: OutputFormat,
        /// This image's share of the token usage; the shares add up to the total.
        pub usage: Option<Usage>,
    }
}

/// The end of a server-sent event, after its data.
const END: &[u8] = b"\n\n";
/// Capacity to reserve for an event beyond its image.
const ENVELOPE: usize = 1024;
