//! Collects an answer.

use wire::lenient::{ReadError, Tokens};

use super::{Picture, Reader, Update};
use crate::stream::Operation;

/// Collects a stream into its images. Previews are discarded.
///
/// ```
/// use sluicegate_images::Operation;
/// use sluicegate_images::lenient::{Collector, Picture};
///
/// let mut collector = Collector::new(Operation::Generation, Some(1));
/// collector.event(
///     r#"{"type":"image_generation.completed","url":"https://pictures.example/a.png"}"#,
/// )?;
/// let answer = collector.finish()?;
/// assert_eq!(answer.images, [Picture::Url("https://pictures.example/a.png".into())]);
/// # Ok::<(), sluicegate_images::lenient::ReadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Collector {
    reader: Reader,
    images: Vec<Picture<'static>>,
}

/// The images of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer<'a> {
    /// The images, in their order.
    pub images: Vec<Picture<'a>>,
    /// The token counts, if the server sends them.
    pub tokens: Option<Tokens>,
}

impl Collector {
    /// Creates a collector without images; see [`Reader::new`].
    #[must_use]
    pub fn new(operation: Operation, count: Option<u32>) -> Self {
        Self {
            reader: Reader::new(operation, count),
            images: Vec::new(),
        }
    }

    /// Reads the data of an event.
    ///
    /// # Errors
    /// As for [`Reader::event`].
    pub fn event(&mut self, data: &str) -> Result<(), ReadError> {
        if let Update::Image(picture) = self.reader.event(data)? {
            self.images.push(picture.into_owned());
        }
        Ok(())
    }

    /// Returns the images at the end of the stream.
    ///
    /// # Errors
    /// As for [`Reader::finish`].
    pub fn finish(self) -> Result<Answer<'static>, ReadError> {
        self.reader.finish()?;
        Ok(Answer {
            images: self.images,
            tokens: self.reader.tokens(),
        })
    }
}

/// Reads a plain reply with `count` images, or any number of them.
///
/// # Errors
/// As for [`Reader::reply`].
pub fn collect(body: &str, count: Option<u32>) -> Result<Answer<'_>, ReadError> {
    // Replies of both operations are the same.
    let mut reader = Reader::new(Operation::Generation, count);
    let images = reader.reply(body)?;
    Ok(Answer {
        images,
        tokens: reader.tokens(),
    })
}
