//! The grammar of a stream as a state machine, and the fold from a stream to the reply that it amounts to.
//!
//! ```text
//! stream  = picture+                               as many as were asked for, when that is known
//!         | … error                                anywhere before the end
//! picture = preview* completed                     partial_image_index rising
//! ```
//!
//! Any preview may be missing, the first one too. While several pictures may still come, nothing tells whose a preview
//! is, and they may be made side by side: then their previews come in any order. Each operation has events of its own,
//! and a stream keeps to them. An event of an unknown type may come anywhere before the end. See spec §4.5, §6.3 and
//! wire-reference §4.3.

use std::fmt;

use wire::{ErrorBody, Object};

use crate::event::{Completed, Event, Preview};
use crate::response::{Image, Response};

/// What a stream is the answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Pictures from a prompt.
    Generation,
    /// Pictures from pictures.
    Edit,
}

/// Reads along with a stream and says when it leaves the grammar.
#[derive(Clone, Debug)]
pub struct Grammar {
    operation: Operation,
    /// How many pictures there are to be, when that is known.
    count: Option<u32>,
    /// Pictures that are done.
    pictures: u32,
    /// The last preview since a picture was done.
    preview: Option<u32>,
    ended: bool,
}

/// How a stream leaves the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offence {
    /// An event of the other operation.
    Family,
    /// A preview of the last picture whose index does not rise.
    Preview,
    /// Anything after the end: after a failure, or after the last picture.
    AfterEnd,
    /// The bytes end before the last picture is done.
    Truncated,
}

impl Grammar {
    /// The grammar before the first event. With a `count` the stream ends with so many pictures; without one it may
    /// end after any.
    #[must_use]
    pub fn new(operation: Operation, count: Option<u32>) -> Self {
        Self { operation, count, pictures: 0, preview: None, ended: false }
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// How the event leaves the grammar. The machine is then of no more use.
    pub fn push(&mut self, event: &Event) -> Result<(), Offence> {
        if self.ended {
            return Err(Offence::AfterEnd);
        }
        match (event, self.operation) {
            (Event::GenerationPreview(preview), Operation::Generation)
            | (Event::EditPreview(preview), Operation::Edit) => self.preview(preview),
            (Event::GenerationCompleted(_), Operation::Generation) | (Event::EditCompleted(_), Operation::Edit) => {
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

    /// Whether the end was seen: a failure, or the last of a known count of pictures.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Takes the end of the bytes.
    ///
    /// # Errors
    /// [`Offence::Truncated`] when a picture is not done, or there are too few.
    pub fn finish(self) -> Result<(), Offence> {
        let may_end = self.count.is_none() && self.pictures > 0 && self.preview.is_none();
        if self.ended || may_end { Ok(()) } else { Err(Offence::Truncated) }
    }

    fn preview(&mut self, preview: &Preview) -> Result<(), Offence> {
        let index = preview.partial_image_index;
        let is_last = self.count == Some(self.pictures.saturating_add(1));
        let in_order = !is_last || self.preview.is_none_or(|last| index > last);
        self.preview = Some(index);
        if in_order { Ok(()) } else { Err(Offence::Preview) }
    }

    fn completed(&mut self) {
        self.preview = None;
        self.pictures = self.pictures.saturating_add(1);
        self.ended = self.count.is_some_and(|count| self.pictures >= count);
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Family => "an event of the other operation",
            Self::Preview => "a preview out of order",
            Self::AfterEnd => "something after the end of the stream",
            Self::Truncated => "the end of the stream before its last picture is done",
        })
    }
}

impl std::error::Error for Offence {}

impl Response {
    /// The stream that it would have been: each picture completed. The usage comes with the first.
    pub fn into_events(self, operation: Operation) -> impl Iterator<Item = Event> {
        let Self { created, background, data, output_format, quality, size, mut usage, .. } = self;
        data.into_iter().map(move |image| {
            let completed = Completed {
                b64_json: image.b64_json,
                generation_id: image.generation_id,
                created_at: created,
                size: size.clone(),
                quality: quality.clone(),
                background: background.clone(),
                output_format: output_format.clone(),
                usage: usage.take(),
                extra: image.extra,
            };
            match operation {
                Operation::Generation => Event::GenerationCompleted(completed),
                Operation::Edit => Event::EditCompleted(completed),
            }
        })
    }
}

/// Gathers a stream into the reply that it amounts to. Previews are left out.
#[derive(Clone, Debug)]
pub struct Fold {
    grammar: Grammar,
    response: Option<Response>,
    failure: Option<ErrorBody>,
}

/// Why a stream amounts to no reply.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamError {
    /// It left the grammar.
    Offence(Offence),
    /// It told of a failure.
    Failed(ErrorBody),
}

impl Fold {
    /// The fold of no events; see [`Grammar::new`].
    #[must_use]
    pub fn new(operation: Operation, count: Option<u32>) -> Self {
        Self { grammar: Grammar::new(operation, count), response: None, failure: None }
    }

    /// Takes the next event, and the picture in it.
    ///
    /// # Errors
    /// When the event leaves the grammar.
    pub fn push(&mut self, event: Event) -> Result<(), StreamError> {
        self.grammar.push(&event).map_err(StreamError::Offence)?;
        match event {
            Event::GenerationCompleted(completed) | Event::EditCompleted(completed) => self.completed(completed),
            Event::Error(body) => self.failure = Some(body),
            Event::GenerationPreview(_) | Event::EditPreview(_) | Event::Other(_) => {}
        }
        Ok(())
    }

    /// The reply, once the stream has ended.
    ///
    /// # Errors
    /// When the stream failed, or has fewer pictures than were asked for.
    pub fn finish(self) -> Result<Response, StreamError> {
        if let Some(body) = self.failure {
            return Err(StreamError::Failed(body));
        }
        self.grammar.finish().map_err(StreamError::Offence)?;
        self.response.ok_or(StreamError::Offence(Offence::Truncated))
    }

    fn completed(&mut self, completed: Completed) {
        let Completed { b64_json, generation_id, created_at, size, quality, background, output_format, usage, extra } =
            completed;
        // What is said of all pictures alike is the first one's word.
        let response = self.response.get_or_insert_with(|| Response {
            created: created_at,
            background,
            data: Vec::new(),
            output_format,
            quality,
            size,
            usage: None,
            extra: Object::new(),
        });
        response.data.push(Image { b64_json, generation_id, extra });
        if let Some(share) = usage {
            response.usage.get_or_insert_default().add(&share);
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offence(offence) => offence.fmt(f),
            Self::Failed(body) => write!(f, "the stream failed: {}", body.error.message),
        }
    }
}

impl std::error::Error for StreamError {}
