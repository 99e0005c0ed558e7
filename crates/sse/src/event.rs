//! A decoded event: bytes lent by the decoder, and where in them name and data lie.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use crate::Decoder;
use crate::line::{self, Field};

/// An event as a server sent it, lent by the decoder until it is asked for the next one.
///
/// Nothing of it is copied unless it has to be: [`Event::data`] of an event with a single `data` line, as model APIs
/// send them, is a slice of the input. [`Event::to_bytes`] keeps what is to outlive the loan.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    decoder: &'a Decoder,
}

/// Where the data lines of a block lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Data {
    #[default]
    None,
    One(Range<usize>),
    /// To be found again: remembering each would cost more memory than short lines themselves.
    Many,
}

impl Data {
    /// Adds the data line whose value is at `value`.
    pub(crate) fn push(&mut self, value: Range<usize>) {
        *self = match self {
            Self::None => Self::One(value),
            Self::One(_) | Self::Many => Self::Many,
        };
    }
}

impl<'a> Event<'a> {
    /// The event that the open block of `decoder` is.
    pub(crate) fn new(decoder: &'a Decoder) -> Self {
        Self { decoder }
    }

    /// What the `event` field says, and `message` when it is absent or empty.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        let name = self.decoder.fields.name.clone();
        if name.is_empty() { Cow::Borrowed(DEFAULT_NAME) } else { String::from_utf8_lossy(&self.raw()[name]) }
    }

    /// The data: the values of the `data` fields, with LF between them.
    #[must_use]
    pub fn data(&self) -> Cow<'a, str> {
        match self.data_bytes() {
            Cow::Borrowed(data) => text(data),
            Cow::Owned(data) => Cow::Owned(String::from_utf8(data).unwrap_or_else(|error| repaired(error.as_bytes()))),
        }
    }

    /// The data before its UTF-8 is looked at: the cheapest way to a JSON parser, which looks at it anyway.
    #[must_use]
    #[inline]
    pub fn data_bytes(&self) -> Cow<'a, [u8]> {
        match &self.decoder.fields.data {
            Data::None => Cow::Borrowed(&[]),
            Data::One(range) => Cow::Borrowed(&self.raw()[range.clone()]),
            Data::Many => Cow::Owned(joined(self.raw())),
        }
    }

    /// Where in [`Event::raw`] the data lies, when it is of one line.
    #[must_use]
    #[inline]
    pub fn data_range(&self) -> Option<Range<usize>> {
        match &self.decoder.fields.data {
            Data::One(range) => Some(range.clone()),
            Data::None | Data::Many => None,
        }
    }

    /// The id that the stream gave last, as of this event; empty when it gave none.
    #[must_use]
    pub fn last_event_id(&self) -> &'a str {
        self.decoder.last_event_id()
    }

    /// The event as it came, to be passed on unchanged: its lines from the first that is no comment to the blank line
    /// at its end, with unknown fields and the comments between them.
    ///
    /// It may be the first of another stream: lines at its beginning that begin with U+FEFF are left out. In the midst
    /// of a stream they set nothing, and at the beginning of one the mark would be taken off them. So is the LF of a
    /// CRLF that ends the blank line, when the input was cut between the two: the event was complete at the CR, and
    /// handed out.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.decoder.lines.block()
    }

    /// [`Event::raw`] to be kept. When all of its lines lie in one fed chunk it is a slice of that, which keeps the
    /// chunk's memory alive and copies nothing.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.decoder.lines.shared_block()
    }

    /// Whether [`Event::raw`] holds invalid UTF-8, which name and data show as U+FFFD.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        str::from_utf8(self.raw()).is_err()
    }
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("name", &self.name())
            .field("data", &self.data())
            .field("last_event_id", &self.last_event_id())
            .finish_non_exhaustive()
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(repaired(bytes)),
    }
}

fn repaired(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The values of all data lines of `block`, with LF between them.
fn joined(block: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(block.len());
    let mut rest = Some(block);
    while let Some(text) = rest {
        let line;
        (line, rest) = line::split(text);
        if let (Field::Data, value) = line::field(line) {
            data.extend_from_slice(&line[value..]);
            data.push(b'\n');
        }
    }
    data.pop();
    data
}

const DEFAULT_NAME: &str = "message";
