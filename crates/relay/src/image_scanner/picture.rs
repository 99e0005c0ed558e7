//! The images of a reply, whose contents are checked while they pass.

use std::ops::Range;

use images::lenient::PictureCheck;

/// An image of a reply that is being scanned.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    /// The string that is being scanned, if it is a member that matters.
    content: Option<Content>,
    has_base64: bool,
    has_url: bool,
    is_broken: bool,
}

#[derive(Clone, Debug)]
enum Content {
    Base64(PictureCheck),
    /// True if it is not empty.
    Url(bool),
}

impl Picture {
    /// Begins the string of the member of this name.
    pub(super) fn begin(&mut self, name: &str) {
        self.content = match name {
            "b64_json" => Some(Content::Base64(PictureCheck::default())),
            "url" => Some(Content::Url(false)),
            _ => None,
        };
    }

    /// Adds a piece of the string. Calls `edit` for each range of base64 that has to be replaced.
    pub(super) fn push(&mut self, piece: &[u8], edit: impl FnMut(Range<usize>, &[u8])) {
        match &mut self.content {
            Some(Content::Base64(check)) => check.push_edited(piece, edit),
            Some(Content::Url(is_filled)) => *is_filled |= !piece.is_empty(),
            None => {}
        }
    }

    /// Adds the base64 that a piece begins with, as far as it needs no further look. Returns its
    /// length.
    pub(super) fn push_letters(&mut self, piece: &[u8]) -> usize {
        match &mut self.content {
            Some(Content::Base64(check)) => check.push_letters(piece),
            _ => 0,
        }
    }

    /// Ends the string. Returns the padding that its base64 lacks.
    pub(super) fn end(&mut self) -> &'static str {
        match self.content.take() {
            Some(Content::Base64(check)) if !check.is_empty() => {
                self.has_base64 = true;
                self.is_broken |= check.finish().is_err();
                return check.missing_padding();
            }
            Some(Content::Url(is_filled)) => self.has_url |= is_filled,
            _ => {}
        }
        ""
    }

    /// Returns true if an escape within the current string has to be decoded.
    pub(super) fn is_in_base64(&self) -> bool {
        matches!(self.content, Some(Content::Base64(_)))
    }

    /// Returns true if its content is no picture, as far as it was scanned.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns true if it has content.
    pub(super) fn has_content(&self) -> bool {
        self.has_base64 || self.has_url
    }

    /// Returns true if its only content is a URL.
    pub(super) fn is_url(&self) -> bool {
        self.has_url && !self.has_base64
    }
}
