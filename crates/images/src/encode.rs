//! Encodes model output as the events of a stream, always within the stream grammar.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wire::ApiError;

use crate::event::{Completed, Event, Preview};
use crate::request::{Background, OutputFormat, Quality};
use crate::response::Usage;
use crate::stream::Operation;

/// The options that are fixed before generation starts; every event repeats them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Width and height in pixels, such as `1254x1254`.
    pub size: String,
    /// The quality; never `auto`.
    pub quality: Quality,
    /// The background; never `auto`.
    pub background: Background,
    /// The file format.
    pub output_format: OutputFormat,
}

/// Encodes model output as events.
///
/// Any order of calls yields a stream within the grammar: previews are numbered automatically, a
/// completed image restarts the numbering, and a failure consumes the encoder. The caller keeps
/// track of the number of images.
#[derive(Debug)]
pub struct Encoder {
    operation: Operation,
    settled: Settled,
    /// Number of previews emitted for the current image.
    previews: u32,
}

impl Encoder {
    /// Creates an encoder that has emitted nothing yet.
    #[must_use]
    pub fn new(operation: Operation, settled: Settled) -> Self {
        Self {
            operation,
            settled,
            previews: 0,
        }
    }

    /// Emits the next preview of the current image. `file` is the encoded image, `now` in Unix
    /// seconds.
    pub fn preview(&mut self, file: &[u8], now: i64) -> Event {
        let Settled {
            size,
            quality,
            background,
            output_format,
        } = self.settled.clone();
        let file = STANDARD.encode(file);
        let preview = Preview::new(
            file,
            self.previews,
            now,
            size,
            quality,
            background,
            output_format,
        );
        self.previews = self.previews.saturating_add(1);
        match self.operation {
            Operation::Generation => Event::GenerationPreview(preview),
            Operation::Edit => Event::EditPreview(preview),
        }
    }

    /// Emits a completed image: the encoded file, its UUID, and its share of the token usage. `now`
    /// is in Unix seconds.
    pub fn completed(&mut self, file: &[u8], id: String, usage: Usage, now: i64) -> Event {
        let Settled {
            size,
            quality,
            background,
            output_format,
        } = self.settled.clone();
        let completed = Completed {
            generation_id: Some(id),
            usage: Some(usage),
            ..Completed::new(
                STANDARD.encode(file),
                now,
                size,
                quality,
                background,
                output_format,
            )
        };
        self.previews = 0;
        match self.operation {
            Operation::Generation => Event::GenerationCompleted(completed),
            Operation::Edit => Event::EditCompleted(completed),
        }
    }

    /// Ends the stream with a failure.
    #[must_use]
    pub fn fail(self, error: &ApiError) -> Event {
        Event::Error(error.body())
    }
}
