//! The reader of a stream.

use wire::lenient::{ReadError, Text, Tokens};

use super::Picture;
use super::event::{Event, Reply};
use crate::stream::Operation;

/// Reads a stream, event by event.
///
/// ```
/// use sluicegate_images::Operation;
/// use sluicegate_images::lenient::{Picture, Reader, Update};
///
/// let mut reader = Reader::new(Operation::Generation, Some(1));
/// let data = r#"{"type":"image_generation.completed","url":"https://pictures.example/a.png"}"#;
/// let picture = Picture::Url("https://pictures.example/a.png".into());
/// assert_eq!(reader.event(data)?, Update::Image(picture));
/// assert!(reader.is_ended());
/// # Ok::<(), sluicegate_images::lenient::ReadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    operation: Operation,
    count: Option<u32>,
    /// The number of images so far.
    images: u32,
    /// True if there were previews since the last image.
    has_preview: bool,
    /// The index of the last preview since the last image, if it has one.
    preview: Option<u64>,
    tokens: Option<Tokens>,
    traits: Traits,
}

/// The properties of the images, as far as the answer states them; blank where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Width and height, such as `1024x1024`.
    pub size: String,
    /// The quality, such as `high`.
    pub quality: String,
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update<'a> {
    /// A preview of an image.
    Preview(Picture<'a>),
    /// An image.
    Image(Picture<'a>),
    /// `[DONE]`, which clients of this protocol do not expect.
    Done,
    /// An event of another type.
    Other,
}

impl Reader {
    /// Creates a reader that has read nothing. With a `count` an answer has exactly that many
    /// images; without one it has any number of them, but at least one.
    #[must_use]
    pub fn new(operation: Operation, count: Option<u32>) -> Self {
        Self {
            operation,
            count,
            images: 0,
            has_preview: false,
            preview: None,
            tokens: None,
            traits: Traits::default(),
        }
    }

    /// Reads the data of an event.
    ///
    /// # Errors
    /// If it is not an event, reports an error, contradicts an earlier event, or has an image that
    /// is not a picture. The reader is unusable afterwards.
    pub fn event<'a>(&mut self, data: &'a str) -> Result<Update<'a>, ReadError> {
        let data = data.trim_matches([' ', '\t', '\n', '\r']);
        // Some servers end the streams of every protocol with it.
        if data == "[DONE]" {
            return Ok(Update::Done);
        }
        let event = Event::read(data)?;
        if self.is_ended() {
            return Err(ReadError::Contradiction("an event after the last image"));
        }
        let (operation, is_preview) = match event.kind.or_empty() {
            "image_generation.partial_image" => (Operation::Generation, true),
            "image_generation.completed" => (Operation::Generation, false),
            "image_edit.partial_image" => (Operation::Edit, true),
            "image_edit.completed" => (Operation::Edit, false),
            "" => return Err(ReadError::Malformed("an event without a type".to_owned())),
            _ => return Ok(Update::Other),
        };
        if !is_preview {
            // Tokens of an image that is rejected count, too: it has used them all the same.
            self.add(event.usage.tokens());
        }
        if operation != self.operation {
            return Err(ReadError::Contradiction("an event of the other operation"));
        }
        if is_preview {
            self.preview(event.partial_image_index.0)?;
            return event.into_picture().map(Update::Preview);
        }
        self.traits.note(&event.size, &event.quality);
        (self.has_preview, self.preview) = (false, None);
        self.images = self.images.saturating_add(1);
        event.into_picture().map(Update::Image)
    }

    /// Reads a plain reply and returns its images.
    ///
    /// # Errors
    /// If it is not a reply, reports an error, or has no images, another number of them than
    /// expected, or one that is not a picture.
    pub fn reply<'a>(&mut self, body: &'a str) -> Result<Vec<Picture<'a>>, ReadError> {
        let reply = Reply::read(body)?;
        self.traits.note(&reply.size, &reply.quality);
        let images = reply.data.into_iter().flatten();
        let pictures = images.map(|image| image.0.unwrap_or_default().into_picture());
        let pictures: Vec<_> = pictures.collect::<Result<_, _>>()?;
        let (found, count) = (pictures.len(), self.count.map(|count| count as usize));
        if found == 0 || count.is_some_and(|count| count != found) {
            let expected = count.map_or_else(|| "any".to_owned(), |count| count.to_string());
            let why = format!("the reply has {found} images, expected {expected}");
            return Err(ReadError::Malformed(why));
        }
        self.images = u32::try_from(found).unwrap_or(u32::MAX);
        self.tokens = reply.usage.tokens();
        Ok(pictures)
    }

    /// Returns true if all of a known number of images were read.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.count.is_some_and(|count| self.images >= count)
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// If an image is incomplete or missing.
    pub fn finish(&self) -> Result<(), ReadError> {
        let may_end = self.count.is_none() && self.images > 0 && !self.has_preview;
        if self.is_ended() || may_end {
            Ok(())
        } else {
            Err(ReadError::Truncated)
        }
    }

    /// Returns the sum of the token counts so far: each image of a stream has a share of them.
    #[must_use]
    pub fn tokens(&self) -> Option<Tokens> {
        self.tokens
    }

    /// Returns the number of images so far.
    #[must_use]
    pub fn images(&self) -> u32 {
        self.images
    }

    /// Returns the properties of the last image.
    #[must_use]
    pub fn traits(&self) -> &Traits {
        &self.traits
    }

    /// Checks the order of the previews of the last image. Images may be generated in parallel, so
    /// previews of the others come in any order.
    fn preview(&mut self, index: Option<u64>) -> Result<(), ReadError> {
        let is_last = self.count == Some(self.images.saturating_add(1));
        let repeats = index
            .zip(self.preview)
            .is_some_and(|(index, last)| index <= last);
        (self.has_preview, self.preview) = (true, index.or(self.preview));
        if is_last && repeats {
            Err(ReadError::Contradiction(
                "a preview whose index does not increase",
            ))
        } else {
            Ok(())
        }
    }

    fn add(&mut self, share: Option<Tokens>) {
        if let Some(share) = share {
            let sum = self.tokens.unwrap_or_default();
            self.tokens = Some(sum.with_share(share));
        }
    }
}

impl Traits {
    fn note(&mut self, size: &Text<'_>, quality: &Text<'_>) {
        size.or_empty().clone_into(&mut self.size);
        quality.or_empty().clone_into(&mut self.quality);
    }
}
