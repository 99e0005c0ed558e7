//! A decoded event that borrows its bytes from the decoder.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::Decoder;
use crate::line::{self, Field};

/// An event, borrowed from the decoder until the next call to [`Decoder::poll`].
///
/// Data is copied only when necessary: [`Event::data`] of an event with a single `data` line, as
/// model APIs send them, is a slice of the input. Use [`Event::to_bytes`] to keep an event beyond
/// the borrow.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    pub(super) decoder: &'a Decoder,
    /// The length of the start of the raw event that is known to be ASCII.
    pub(super) ascii: usize,
    /// The rest of the raw event, if it is known to be UTF-8.
    pub(super) text: Option<&'a str>,
}

/// The location of the data lines of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Data {
    #[default]
    None,
    One(Range<usize>),
    /// Several lines, searched for again when read: storing each range could take more memory than
    /// short lines do.
    Many,
}

impl Data {
    /// Adds a data line with its value at `value`.
    pub(crate) fn push(&mut self, value: Range<usize>) {
        *self = match self {
            Self::None => Self::One(value),
            Self::One(_) | Self::Many => Self::Many,
        };
    }
}

impl<'a> Event<'a> {
    /// Returns the value of the `event` field, or `message` if it is absent or empty.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        let name = self.decoder.fields.name.clone();
        if name.is_empty() {
            return Cow::Borrowed(DEFAULT_NAME);
        }
        self.checked(name.clone())
            .unwrap_or_else(|| text(&self.raw()[name]))
    }

    /// Returns the data: the values of all `data` fields, joined with LF.
    #[must_use]
    #[inline]
    pub fn data(&self) -> Cow<'a, str> {
        if let Data::One(range) = &self.decoder.fields.data
            && let Some(data) = self.checked(range.clone())
        {
            return data;
        }
        self.validated_data()
    }

    fn validated_data(&self) -> Cow<'a, str> {
        match self.data_bytes() {
            Cow::Borrowed(data) => text(data),
            Cow::Owned(data) => {
                Cow::Owned(String::from_utf8(data).unwrap_or_else(|error| lossy(error.as_bytes())))
            }
        }
    }

    /// Returns the data without validating UTF-8. Preferable for a JSON parser, which validates it
    /// anyway.
    #[must_use]
    #[inline]
    pub fn data_bytes(&self) -> Cow<'a, [u8]> {
        match &self.decoder.fields.data {
            Data::None => Cow::Borrowed(&[]),
            Data::One(range) => Cow::Borrowed(&self.raw()[range.clone()]),
            Data::Many => Cow::Owned(join_data(self.raw())),
        }
    }

    /// Returns the range of the data within [`Event::raw`], if the event has a single `data` line.
    #[must_use]
    #[inline]
    pub fn data_range(&self) -> Option<Range<usize>> {
        match &self.decoder.fields.data {
            Data::One(range) => Some(range.clone()),
            Data::None | Data::Many => None,
        }
    }

    /// Returns the last event id of the stream as of this event; empty if there was none.
    #[must_use]
    pub fn last_event_id(&self) -> &'a str {
        self.decoder.last_event_id()
    }

    /// Returns the raw bytes of the event, for forwarding it unchanged: its lines from the first
    /// non-comment line to the final blank line, including unknown fields and comments in between.
    ///
    /// The result is safe to use as the first event of another stream: leading lines that begin
    /// with U+FEFF are left out. Inside a stream they set nothing, but at the start of one the mark
    /// would be stripped and the line would count. The LF of a final CRLF is left out if a chunk
    /// ended between the two bytes, because the event was already complete, and returned, at the
    /// CR.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.decoder.lines.block()
    }

    /// Returns [`Event::raw`] as owned bytes. If the event lies within one chunk this is a slice
    /// that keeps the chunk's memory alive and copies nothing. Neither does it copy an event of more
    /// than 4 KiB that was assembled from several chunks: its memory, of up to twice its length, is
    /// shared.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.decoder.lines.shared_block()
    }

    /// Returns true if [`Event::raw`] contains invalid UTF-8, which name and data show as U+FFFD.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.text.is_none() && utf8(self.rest()).is_none()
    }

    /// The raw event after the start that is known to be ASCII.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.raw()[self.ascii..]
    }

    /// A part of the rest, if that is known to be UTF-8.
    #[inline]
    fn checked(&self, range: Range<usize>) -> Option<Cow<'a, str>> {
        let start = range.start.checked_sub(self.ascii)?;
        self.text?
            .get(start..range.end - self.ascii)
            .map(Cow::Borrowed)
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

/// Returns `bytes` as text, if they are UTF-8.
#[inline]
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    match bytes.len() < SHORT {
        true => str::from_utf8(bytes).ok(),
        false => simdutf8::basic::from_utf8(bytes).ok(),
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    utf8(bytes).map_or_else(|| Cow::Owned(lossy(bytes)), Cow::Borrowed)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Joins the values of all data lines of `block` with LF.
fn join_data(block: &[u8]) -> Vec<u8> {
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

/// Text of fewer bytes is validated faster without SIMD.
const SHORT: usize = 64;
