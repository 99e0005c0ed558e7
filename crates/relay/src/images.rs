//! Relays Images.

use engine::{EngineError, Usage};
use images::lenient::{self, Picture, Reader, Traits, Update};
use images::{Event, Operation};
use vendor::{engine_error, truncated};
use wire::{ApiError, Splice};

use super::{Action, Delivered, End, ImageScanner, RelayProtocol, utf8};

/// The relayed Images protocol.
#[derive(Debug)]
pub struct Images {
    reader: Reader,
    /// True after an image or a preview.
    has_picture: bool,
}

impl Images {
    /// Creates the state of an answer to a request for `count` images.
    #[must_use]
    pub fn new(operation: Operation, count: u32) -> Self {
        Self {
            reader: Reader::new(operation, Some(count)),
            has_picture: false,
        }
    }
}

impl RelayProtocol for Images {
    fn event(
        &mut self,
        data: &str,
        _: &[u8],
        edits: &mut Splice<'_>,
    ) -> Result<Action, EngineError> {
        match self.reader.event(data).map_err(engine_error)? {
            Update::Done => return Ok(Action::Drop),
            Update::Preview(picture) | Update::Image(picture) => {
                check_bytes(&picture)?;
                self.has_picture = true;
                if let Picture::Repaired(base64) = picture {
                    edits.replace(&["b64_json"], format!("\"{base64}\"").as_bytes());
                }
            }
            _ => {}
        }
        Ok(if self.reader.is_ended() {
            Action::End(end(&self.reader))
        } else {
            Action::Forward
        })
    }

    fn has_content(&self) -> bool {
        self.has_picture
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<End, EngineError> {
        Err(truncated())
    }

    fn usage(&self) -> Option<Usage> {
        self.reader.tokens().map(vendor::usage)
    }

    fn pictures(&self) -> Delivered {
        delivered(&self.reader)
    }

    fn usage_of_reply(body: &[u8]) -> Option<Usage> {
        lenient::reported_tokens(utf8(body).ok()?).map(vendor::usage)
    }

    fn fail(&mut self, _: &str, error: &ApiError, out: &mut Vec<u8>) {
        Event::Error(error.body()).write(out);
    }

    fn reply(body: &[u8], _: &str, _: &mut Splice<'_>) -> Result<End, EngineError> {
        // Replies of both operations are the same.
        let mut reader = Reader::new(Operation::Generation, None);
        reader.reply(utf8(body)?).map_err(engine_error)?;
        Ok(end(&reader))
    }
}

/// Returns the images of a complete reply; none if it is not valid.
#[must_use]
pub fn pictures_of_reply(body: &[u8]) -> Delivered {
    let mut reader = Reader::new(Operation::Generation, None);
    let read = utf8(body).map(|text| reader.reply(text).is_ok());
    match read {
        Ok(true) => delivered(&reader),
        _ => Delivered::default(),
    }
}

fn delivered(reader: &Reader) -> Delivered {
    let Traits { size, quality } = reader.traits().clone();
    Delivered {
        count: reader.images().into(),
        size,
        quality,
    }
}

/// Converts a complete reply to a stream, for clients that requested a stream. Images are in standard
/// base64.
///
/// # Errors
/// When it is not a reply, reports a failure, has an image as a URL, or does not have exactly
/// `count` images.
pub fn reply_as_stream(
    body: &[u8],
    operation: Operation,
    count: u32,
) -> Result<(Vec<u8>, End), EngineError> {
    let mut scanner = ImageScanner::default();
    let body = scanner.edit(body);
    let (text, mut reader) = (utf8(&body)?, Reader::new(operation, Some(count)));
    let pictures = reader.reply(text).map_err(engine_error)?;
    // Padding that was removed from between letters is not in the text any more.
    scanner.check(true)?;
    pictures.iter().try_for_each(check_bytes)?;
    let mut out = Vec::new();
    lenient::write_as_stream(text, operation, &mut out).map_err(engine_error)?;
    Ok((out, end(&reader)))
}

/// Fails for an image without its bytes, which clients expect in a stream.
fn check_bytes(picture: &Picture<'_>) -> Result<(), EngineError> {
    match picture {
        Picture::Base64(_) | Picture::Repaired(_) => Ok(()),
        Picture::Url(_) => Err(EngineError::Upstream(
            "an image of a stream is a `url` instead of `b64_json`".to_owned(),
        )),
    }
}

fn end(reader: &Reader) -> End {
    End {
        incomplete: false,
        usage: reader.tokens().map(vendor::usage),
    }
}

/// The token usage in the JSON of a reply's `usage` member, if it has any.
pub(super) fn usage(member: &[u8]) -> Option<Usage> {
    lenient::tokens(member).map(vendor::usage)
}
