//! Scans the top-level members and the images of a reply chunk by chunk, repairs the base64 of the
//! images, and detects the end of its JSON.

mod picture;

use std::borrow::Cow;

use bytes::Bytes;
use engine::{EngineError, Usage};
use memchr::memchr2;
use wire::Rewrite;

use self::picture::Picture;
use super::{Delivered, images};

/// A scanner for the JSON of an image reply with status 200 that does not buffer it. It checks and
/// repairs the images like the lenient reader, but does not validate the JSON.
#[derive(Clone, Debug, Default)]
pub struct ImageScanner {
    depth: u64,
    lexical: Lexical,
    /// The position within a member at the top level or of an image.
    position: Position,
    /// The name of this member, with its escapes.
    name: Vec<u8>,
    /// True within the top-level array of images.
    in_images: bool,
    /// The current image.
    picture: Option<Picture>,
    has_images: bool,
    /// The number of complete images.
    images: u64,
    /// The texts of the top-level members `size` and `quality`, with their escapes.
    stated: [Vec<u8>; 2],
    /// The one of them that is being scanned.
    stating: Option<usize>,
    /// True if an image has no content or one that is no picture.
    has_broken_image: bool,
    has_url: bool,
    has_error: bool,
    closed: bool,
    /// True within a top-level `usage` object, which is being copied.
    in_usage: bool,
    usage: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Lexical {
    #[default]
    Structure,
    String,
    /// The last byte was a backslash in a string.
    Escape,
    /// Within the digits of an escaped character of an image.
    Digits {
        left: u8,
        code: u8,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    #[default]
    BeforeName,
    Name,
    BeforeValue,
    Value,
}

impl ImageScanner {
    /// Scans the next chunk, and returns it for the client. It is copied only if it has base64 that is
    /// not in standard form.
    #[must_use]
    pub fn read(&mut self, chunk: Bytes) -> Bytes {
        match self.edit(&chunk) {
            Cow::Borrowed(_) => chunk,
            Cow::Owned(edited) => edited.into(),
        }
    }

    /// Scans the next chunk, and returns it for the client.
    pub fn edit<'a>(&mut self, chunk: &'a [u8]) -> Cow<'a, [u8]> {
        let mut edits = Rewrite::new(chunk);
        let mut bytes = chunk;
        while let Some((&first, rest)) = bytes.split_first() {
            let before = bytes;
            let at = chunk.len() - bytes.len();
            bytes = match self.lexical {
                Lexical::Structure => {
                    self.structure(first);
                    rest
                }
                Lexical::String => self.string(bytes, at, &mut edits),
                Lexical::Escape => {
                    self.escape(first, at, &mut edits);
                    rest
                }
                Lexical::Digits { left, code } => {
                    self.digit(first, left, code, at, &mut edits);
                    rest
                }
            };
            self.push_usage(&before[..before.len() - bytes.len()]);
        }
        edits.finish()
    }

    /// Returns true if the array of images has at least the start of one.
    #[must_use]
    pub fn has_images(&self) -> bool {
        self.has_images
    }

    /// Returns true if an image has only its URL.
    #[must_use]
    pub fn has_url(&self) -> bool {
        self.has_url
    }

    /// Returns true if the object has a member `error` that is not `null`.
    #[must_use]
    pub fn has_error(&self) -> bool {
        self.has_error
    }

    /// Returns true once the outermost bracket was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns the token usage once the outermost bracket was closed, if the reply has a valid one
    /// of bounded size.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        if self.closed {
            images::usage(&self.usage)
        } else {
            None
        }
    }

    /// Returns the complete images that were read, with the properties that the reply states.
    #[must_use]
    pub fn pictures(&self) -> Delivered {
        let [size, quality] = [0, 1].map(|at| unescape(&self.stated[at]).unwrap_or_default());
        Delivered {
            count: self.images,
            size,
            quality,
        }
    }

    /// Checks a reply that is too long to be buffered, as far as it was read; `is_at_end` if that
    /// is all of it.
    ///
    /// # Errors
    /// When it is truncated, has no images, one that is no picture, or an error after them.
    pub fn check(&self, is_at_end: bool) -> Result<(), EngineError> {
        let is_truncated = is_at_end && !self.closed;
        if is_truncated {
            Err(EngineError::Truncated(
                "reply ends before the end of its JSON".to_owned(),
            ))
        } else if self.has_error {
            Err(EngineError::Upstream(
                "error after the images of a reply with status 200".to_owned(),
            ))
        } else if self.has_broken_image {
            Err(EngineError::Upstream(
                "an image of a reply is empty, cut or no picture".to_owned(),
            ))
        } else if self.closed && !self.has_images {
            Err(EngineError::Upstream(
                "long reply without images".to_owned(),
            ))
        } else {
            Ok(())
        }
    }

    fn structure(&mut self, byte: u8) {
        match self.depth {
            1 => self.member(byte),
            2 if self.in_images => self.element(byte),
            3 if self.picture.is_some() => self.image_member(byte),
            _ => {}
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.depth == 1 {
                    (self.closed, self.in_usage) = (true, false);
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b'"' => self.lexical = Lexical::String,
            _ => {}
        }
    }

    /// Handles a byte of a top-level member outside of strings.
    fn member(&mut self, byte: u8) {
        if byte == b',' {
            (self.in_images, self.in_usage, self.stating) = (false, false, None);
        }
        match self.value(byte).as_deref() {
            Some("data") => self.in_images = byte == b'[',
            // Only `null` starts with this byte, and only `false` with the other.
            Some("error") => self.has_error |= !matches!(byte, b'n' | b'f'),
            Some("usage") => {
                self.in_usage = byte == b'{';
                self.usage.clear();
            }
            Some(name) => {
                let stated = STATED.iter().position(|stated| *stated == name);
                self.stating = stated.filter(|_| byte == b'"');
            }
            None => {}
        }
    }

    /// Handles a byte between the elements of the array of images.
    fn element(&mut self, byte: u8) {
        match byte {
            b'{' => {
                (self.has_images, self.position) = (true, Position::BeforeName);
                self.picture = Some(Picture::default());
            }
            b',' | b']' => {}
            byte => self.has_broken_image |= !byte.is_ascii_whitespace(),
        }
    }

    /// Handles a byte of a member of an image outside of strings.
    fn image_member(&mut self, byte: u8) {
        if byte == b'}' {
            let picture = self.picture.take().unwrap_or_default();
            self.has_broken_image |= !picture.has_content();
            self.has_url |= picture.is_url();
            self.images += u64::from(picture.has_content());
            self.position = Position::Value;
            return;
        }
        let name = self.value(byte).filter(|_| byte == b'"');
        if let Some((name, picture)) = name.zip(self.picture.as_mut()) {
            picture.begin(&name);
        }
    }

    /// Advances the position by a byte outside of strings. Returns the name of the member whose
    /// value begins with this byte.
    fn value(&mut self, byte: u8) -> Option<String> {
        match (self.position, byte) {
            (_, b',') => self.position = Position::BeforeName,
            (Position::BeforeName, b'"') => {
                self.position = Position::Name;
                self.name.clear();
            }
            (Position::BeforeValue, byte) if byte != b':' && !byte.is_ascii_whitespace() => {
                self.position = Position::Value;
                return unescape(&self.name);
            }
            _ => {}
        }
        None
    }

    /// Appends to the copy of the usage. A usage that is too long is discarded.
    fn push_usage(&mut self, part: &[u8]) {
        if self.in_usage && self.usage.len() + part.len() <= MAX_USAGE {
            self.usage.extend_from_slice(part);
        } else if self.in_usage {
            self.in_usage = false;
            self.usage.clear();
        }
    }

    /// Scans within a string, which goes on at this position of the chunk, and returns the rest of the
    /// bytes. Images are long strings: their letters are looked at once, and other contents are
    /// skipped with memchr.
    fn string<'a>(&mut self, bytes: &'a [u8], at: usize, edits: &mut Rewrite<'_>) -> &'a [u8] {
        let picture = self.picture.as_mut();
        let picture = picture.filter(|_| self.position != Position::Name);
        let letters = picture.map_or(0, |picture| picture.push_letters(bytes));
        let (bytes, at) = (&bytes[letters..], at + letters);
        let Some(length) = memchr2(b'"', b'\\', bytes) else {
            self.push_text(bytes, at, edits);
            return &[];
        };
        self.push_text(&bytes[..length], at, edits);
        self.quote_or_backslash(bytes[length], at + length, edits);
        &bytes[length + 1..]
    }

    /// Adds a piece of a string without escapes to the name or to the content of an image.
    fn push_text(&mut self, part: &[u8], at: usize, edits: &mut Rewrite<'_>) {
        if self.position == Position::Name {
            let room = MAX_NAME.saturating_sub(self.name.len());
            self.name.extend_from_slice(&part[..part.len().min(room)]);
        } else if let Some(picture) = &mut self.picture {
            picture.push(part, |range, with| {
                edits.replace(at + range.start..at + range.end, with);
            });
        } else if let Some(at) = self.stating {
            let stated = &mut self.stated[at];
            let room = MAX_STATED.saturating_sub(stated.len());
            stated.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    /// Handles the byte after a backslash, which is at this position of the chunk. The backslash of
    /// base64 was removed, because it may have been in the chunk before.
    fn escape(&mut self, byte: u8, at: usize, edits: &mut Rewrite<'_>) {
        self.lexical = Lexical::String;
        match byte {
            _ if !self.is_in_base64() => self.push_text(&[b'\\', byte], at, edits),
            b'u' => {
                self.lexical = Lexical::Digits { left: 4, code: 0 };
                edits.replace(at..at + 1, b"");
            }
            b'/' => self.push_escaped(b'/', b"\\/", at, edits),
            b'n' | b'r' | b't' => self.push_escaped(b'\n', b"", at, edits),
            // No other character is one of base64.
            _ => self.push_escaped(b'\\', b"!", at, edits),
        }
    }

    /// Adds an escaped character of base64, whose last byte is at this position of the chunk. It is
    /// written as `written` unless it has to be edited.
    fn push_escaped(&mut self, letter: u8, written: &[u8], at: usize, edits: &mut Rewrite<'_>) {
        let letter = [letter];
        let mut edited = Rewrite::new(&letter);
        if let Some(picture) = &mut self.picture {
            picture.push(&letter, |range, with| edited.replace(range, with));
        }
        match edited.is_unchanged() {
            true => edits.replace(at..at + 1, written),
            false => edits.replace(at..at + 1, &edited.finish()),
        }
    }

    /// Handles a digit of an escaped character. All base64 characters have codes below 128.
    fn digit(&mut self, byte: u8, left: u8, code: u8, at: usize, edits: &mut Rewrite<'_>) {
        let digit = char::from(byte).to_digit(16).map(|digit| digit as u8);
        let code = match digit {
            Some(digit) if code < 16 => code * 16 + digit,
            _ => u8::MAX,
        };
        self.lexical = if left > 1 {
            edits.replace(at..at + 1, b"");
            Lexical::Digits {
                left: left - 1,
                code,
            }
        } else {
            // A character outside of base64 fails the reply, and must not end the string before.
            let is_safe = code.is_ascii_graphic() && !matches!(code, b'"' | b'\\');
            let written = if is_safe { code } else { b'!' };
            self.push_escaped(code, &[written], at, edits);
            Lexical::String
        };
    }

    fn is_in_base64(&self) -> bool {
        let picture = self.picture.as_ref();
        self.position != Position::Name && picture.is_some_and(Picture::is_in_base64)
    }

    /// Handles the quote that ends a string, or a backslash in it, at this position of the chunk.
    fn quote_or_backslash(&mut self, byte: u8, at: usize, edits: &mut Rewrite<'_>) {
        if byte == b'\\' {
            self.lexical = Lexical::Escape;
            if self.is_in_base64() {
                edits.replace(at..at + 1, b"");
            }
            return;
        }
        self.lexical = Lexical::Structure;
        if self.position == Position::Name {
            self.position = Position::BeforeValue;
        } else if let Some(picture) = &mut self.picture {
            let missing = picture.end();
            self.has_broken_image |= picture.is_broken();
            if !missing.is_empty() {
                edits.replace(at..at, missing.as_bytes());
            }
        }
    }
}

fn unescape(written: &[u8]) -> Option<String> {
    serde_json::from_slice(&[b"\"", written, b"\""].concat()).ok()
}

/// The maximum size of a usage object, in bytes; a few counts take far less.
const MAX_USAGE: usize = 4 << 10;

/// The members that state the properties of the images.
const STATED: [&str; 2] = ["size", "quality"];
/// The maximum length of the value of such a member, in bytes.
const MAX_STATED: usize = 64;

/// The maximum length of a name that is kept: eight letters, all of them escaped, and one more
/// byte, so that a longer name does not match.
const MAX_NAME: usize = 8 * 6 + 1;

#[cfg(test)]
mod tests;
