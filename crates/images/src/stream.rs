//! The stream grammar as a state machine, and the fold that assembles a stream into its response.
//!
//! ```text
//! stream = image+                                  as many as requested, if known
//!        | … error                                 at any point before the end
//! image  = preview* completed                      partial_image_index increasing
//! ```
//!
//! Any preview may be missing, including the first one. While more than one image is still to come,
//! a preview cannot be assigned to an image, and images may be generated in parallel: previews may
//! then come in any order. Each operation has its own events, and a stream never mixes them. An
//! event of an unrecognized type may occur anywhere before the end. See
//! <https://platform.openai.com/docs/api-reference/images-streaming>.

use wire::ErrorBody;

use crate::event::{Completed, Event, Preview};
use crate::response::{Image, Response};

/// The operation that a stream responds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Images from a prompt.
    Generation,
    /// Images from reference images.
    Edit,
}

/// A state machine that checks a stream against the grammar, event by event.
#[derive(Clone, Debug)]
pub struct Grammar {
    operation: Operation,
    /// The number of images in the stream, if known.
    count: Option<u32>,
    /// The number of completed images.
    pictures: u32,
    /// The index of the last preview since the last completed image.
    preview: Option<u32>,
    ended: bool,
}

wire::text_enum! {
    /// A violation of the stream grammar.
    #[non_exhaustive]
    pub enum Offence {
        Family = "an event of the other operation",
        /// A preview of the last image whose index does not increase.
        Preview = "a preview whose index does not increase",
        /// An event after the end: after a failure, or after the last image.
        AfterEnd = "an event after the end of the stream",
        Truncated = "the stream ended before its last image was complete",
    }
}

impl std::error::Error for Offence {}

impl Grammar {
    /// Creates a state machine that has seen no event. With a `count` the stream ends after that
    /// many images; without one it may end after any image.
    #[must_use]
    pub fn new(operation: Operation, count: Option<u32>) -> Self {
        Self {
            operation,
            count,
            pictures: 0,
            preview: None,
            ended: false,
        }
    }

    /// Checks the next event.
    ///
    /// # Errors
    /// Returns the violation, if any. The state machine is unusable afterwards.
    pub fn push(&mut self, event: &Event) -> Result<(), Offence> {
        if self.ended {
            return Err(Offence::AfterEnd);
        }
        match (event, self.operation) {
            (Event::GenerationPreview(preview), Operation::Generation)
            | (Event::EditPreview(preview), Operation::Edit) => self.preview(preview),
            (Event::GenerationCompleted(_), Operation::Generation)
            | (Event::EditCompleted(_), Operation::Edit) => {
                self.completed();
                Ok(())
            }
            (Event::Error(_), _) => {
                self.ended = true;
                Ok(())
            }
            (Event::Other(_), _) => Ok(()),
            _ => Err(Offence::Family),
        }
    }

    /// Returns true if the stream has ended: after a failure, or after the last of a known number
    /// of images.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// Returns [`Offence::Truncated`] if an image is incomplete or missing.
    pub fn finish(self) -> Result<(), Offence> {
        let may_end = self.count.is_none() && self.pictures > 0 && self.preview.is_none();
        if self.ended || may_end {
            Ok(())
        } else {
            Err(Offence::Truncated)
        }
    }

    fn preview(&mut self, preview: &Preview) -> Result<(), Offence> {
        let index = preview.partial_image_index;
        let is_last = self.count == Some(self.pictures.saturating_add(1));
        let in_order = !is_last || self.preview.is_none_or(|last| index > last);
        self.preview = Some(index);
        if in_order {
            Ok(())
        } else {
            Err(Offence::Preview)
        }
    }

    fn completed(&mut self) {
        self.preview = None;
        self.pictures = self.pictures.saturating_add(1);
        self.ended = self.count.is_some_and(|count| self.pictures >= count);
    }
}

/// Assembles a stream into its response. Previews are discarded.
#[derive(Clone, Debug)]
pub struct Fold {
    grammar: Grammar,
    response: Option<Response>,
    failure: Option<ErrorBody>,
}

/// The reason why a stream yields no response.
pub type StreamError = wire::StreamError<Offence, ErrorBody>;

impl Fold {
    /// Creates a fold without events; see [`Grammar::new`].
    #[must_use]
    pub fn new(operation: Operation, count: Option<u32>) -> Self {
        Self {
            grammar: Grammar::new(operation, count),
            response: None,
            failure: None,
        }
    }

    /// Adds the next event, taking ownership of its image.
    ///
    /// # Errors
    /// Returns an error if the event violates the grammar.
    pub fn push(&mut self, event: Event) -> Result<(), StreamError> {
        self.grammar.push(&event).map_err(StreamError::Offence)?;
        match event {
            Event::GenerationCompleted(completed) | Event::EditCompleted(completed) => {
                self.completed(completed);
            }
            Event::Error(body) => self.failure = Some(body),
            Event::GenerationPreview(_) | Event::EditPreview(_) | Event::Other(_) => {}
        }
        Ok(())
    }

    /// Returns the response, once the stream has ended.
    ///
    /// # Errors
    /// Returns an error if the stream failed or has fewer images than requested.
    pub fn finish(self) -> Result<Response, StreamError> {
        if let Some(body) = self.failure {
            return Err(StreamError::Failed(body));
        }
        self.grammar.finish().map_err(StreamError::Offence)?;
        self.response
            .ok_or(StreamError::Offence(Offence::Truncated))
    }

    fn completed(&mut self, completed: Completed) {
        let Completed {
            b64_json,
            generation_id,
            created_at,
            size,
            quality,
            background,
            output_format,
            usage,
            extra,
        } = completed;
        // The fields that all images share are taken from the first one.
        let first = || {
            Response::new(
                created_at,
                background,
                Vec::new(),
                output_format,
                quality,
                size,
            )
        };
        let response = self.response.get_or_insert_with(first);
        response.data.push(Image {
            b64_json,
            generation_id,
            extra,
        });
        if let Some(share) = usage {
            response.usage.get_or_insert_default().add(&share);
        }
    }
}
