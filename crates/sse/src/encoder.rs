//! Encoder for event streams: LF line ends, one space after each colon, no `id` or `retry`, every
//! event with data.
//!
//! Each call writes one complete event or comment. Send its output in one write and flush: some
//! clients lose an event that arrives in two parts.

use std::fmt;

use bytes::BufMut;

use crate::line;

/// Appends one event to `out`: its name, if any, and its data, split at CRLF, CR and LF into `data`
/// lines.
///
/// A decoder returns the data with LF in each of those places. JSON escapes its line breaks and
/// round-trips unchanged. Empty data is valid.
///
/// ```
/// use sluicegate_sse::{EventName, encode};
///
/// const PING: EventName = EventName::from_static("ping");
///
/// let mut out = Vec::new();
/// encode(Some(PING), "{}", &mut out);
/// encode(None, "two\nlines", &mut out);
/// assert_eq!(out, b"event: ping\ndata: {}\n\ndata: two\ndata: lines\n\n");
/// ```
///
/// # Panics
/// Panics if `out` has a fixed size and is too small. `Vec<u8>` and `BytesMut` grow.
pub fn encode(name: Option<EventName<'_>>, data: &str, out: &mut impl BufMut) {
    if let Some(EventName(name)) = name {
        out.put_slice(b"event: ");
        out.put_slice(name.as_bytes());
        out.put_slice(b"\n");
    }
    put_lines(b"data: ", data, out);
}

/// Appends a comment to `out`. Clients ignore it, so it serves to keep an idle connection alive.
/// Each line of `text` becomes a comment line. Call it only between events.
///
/// ```
/// let mut out = Vec::new();
/// sluicegate_sse::comment("keep-alive", &mut out);
/// assert_eq!(out, b": keep-alive\n\n");
/// ```
///
/// # Panics
/// Panics under the same conditions as [`encode`].
pub fn comment(text: &str, out: &mut impl BufMut) {
    put_lines(b": ", text, out);
}

/// A valid event name: not empty and free of CR, LF and NUL.
///
/// Names are usually constants, which [`EventName::from_static`] checks at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventName<'a>(&'a str);

/// An invalid event name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty: clients would treat the event as unnamed.
    Empty,
    /// The name contains CR, LF or NUL.
    Character,
}

impl<'a> EventName<'a> {
    /// Validates a name at run time.
    ///
    /// # Errors
    /// Returns an error if `name` is empty or contains CR, LF or NUL. Such a name is a bug or an
    /// attack, so it is rejected rather than escaped.
    pub const fn new(name: &'a str) -> Result<Self, NameError> {
        let bytes = name.as_bytes();
        if bytes.is_empty() {
            return Err(NameError::Empty);
        }
        // A `for` loop is not const.
        let mut i = 0;
        while i < bytes.len() {
            if matches!(bytes[i], b'\r' | b'\n' | b'\0') {
                return Err(NameError::Character);
            }
            i += 1;
        }
        Ok(Self(name))
    }

    /// Returns the name as a string.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

impl EventName<'static> {
    /// Creates a name from a constant. Assign it to a `const`, so that an invalid name does not
    /// compile:
    ///
    /// ```compile_fail
    /// const BAD: sluicegate_sse::EventName = sluicegate_sse::EventName::from_static("bad\nname");
    /// ```
    ///
    /// # Panics
    /// Panics if [`EventName::new`] rejects the name.
    #[must_use]
    pub const fn from_static(name: &'static str) -> Self {
        match Self::new(name) {
            Ok(name) => name,
            Err(_) => panic!("an event name must not be empty or contain CR, LF or NUL"),
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the event name is empty",
            Self::Character => "the event name contains CR, LF or NUL",
        })
    }
}

impl std::error::Error for NameError {}

/// Writes each line of `text`, prefixed with `prefix`, and a final blank line.
fn put_lines(prefix: &[u8], text: &str, out: &mut impl BufMut) {
    let mut rest = Some(text.as_bytes());
    while let Some(text) = rest {
        let line;
        (line, rest) = line::split(text);
        out.put_slice(prefix);
        out.put_slice(line);
        out.put_slice(b"\n");
    }
    out.put_slice(b"\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(
            EventName::new("response.created").map(EventName::as_str),
            Ok("response.created")
        );
        assert!(EventName::new("\u{e9}v\u{e9}nement \u{2028}").is_ok());
        assert_eq!(EventName::new(""), Err(NameError::Empty));
        for name in ["a\n", "\ra", "a\0b", "a\r\ndata: x"] {
            assert_eq!(EventName::new(name), Err(NameError::Character), "{name:?}");
        }
    }

    #[test]
    fn a_line_end_at_the_end_makes_an_empty_line() {
        let mut out = bytes::BytesMut::new();
        encode(None, "a\r\n", &mut out);
        assert_eq!(out, &b"data: a\ndata: \n\n"[..]);
    }

    #[test]
    fn comments_cannot_smuggle_fields() {
        let mut out = Vec::new();
        comment("a\r\ndata: b\rid: 1", &mut out);
        comment("", &mut out);
        assert_eq!(out, b": a\n: data: b\n: id: 1\n\n: \n\n");
    }
}
