//! From what a model does to the events of a stream, never outside the grammar.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wire::{ApiError, Object};

use crate::event::{Completed, Event, Preview};
use crate::request::{Background, OutputFormat, Quality};
use crate::response::Usage;
use crate::stream::Operation;

/// What was settled before the first pixel, and every event repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Width and height in pixels: `1254x1254`.
    pub size: String,
    /// How much effort is spent; never `auto`.
    pub quality: Quality,
    /// What is behind what is seen; never `auto`.
    pub background: Background,
    /// The encoding.
    pub output_format: OutputFormat,
}

/// Turns what a model does into events.
///
/// Any order of calls gives a stream within the grammar: previews are counted here, a picture restarts the count,
/// and a failure takes the encoder away. How many pictures there are to be is the caller's to keep.
#[derive(Debug)]
pub struct Encoder {
    operation: Operation,
    settled: Settled,
    /// Previews of the picture that is being made.
    previews: u32,
}

impl Encoder {
    /// An encoder before its first event.
    #[must_use]
    pub fn new(operation: Operation, settled: Settled) -> Self {
        Self { operation, settled, previews: 0 }
    }

    /// The next preview of the picture that is being made: the bytes of its file, at `now` in Unix seconds.
    pub fn preview(&mut self, picture: &[u8], now: i64) -> Event {
        let Settled { size, quality, background, output_format } = self.settled.clone();
        let preview = Preview {
            b64_json: STANDARD.encode(picture),
            partial_image_index: self.previews,
            created_at: now,
            size,
            quality,
            background,
            output_format,
            extra: Object::new(),
        };
        self.previews = self.previews.saturating_add(1);
        match self.operation {
            Operation::Generation => Event::GenerationPreview(preview),
            Operation::Edit => Event::EditPreview(preview),
        }
    }

    /// A picture is done: the bytes of its file, its UUID, and its share of what the request took.
    pub fn completed(&mut self, picture: &[u8], id: String, usage: Usage, now: i64) -> Event {
        let Settled { size, quality, background, output_format } = self.settled.clone();
        let completed = Completed {
            b64_json: STANDARD.encode(picture),
            generation_id: Some(id),
            created_at: now,
            size,
            quality,
            background,
            output_format,
            usage: Some(usage),
            extra: Object::new(),
        };
        self.previews = 0;
        match self.operation {
            Operation::Generation => Event::GenerationCompleted(completed),
            Operation::Edit => Event::EditCompleted(completed),
        }
    }

    /// The end, with failure.
    #[must_use]
    pub fn fail(self, error: &ApiError) -> Event {
        Event::Error(error.body())
    }
}
