//! Events to bytes: LF line ends, one space after each colon, no `id` and no `retry`, no event without data.
//!
//! Each call writes one whole event or comment. Send what it wrote in one piece, and flush: some clients lose an
//! event that reaches them in two.

use std::fmt;

use bytes::BufMut;

use crate::line;

/// Appends one event to `out`: its name, when it has one, and its data, split at CRLF, CR and LF into as many lines
/// as it takes.
///
/// A decoder gives the data back with LF at each of those places; JSON has its line breaks escaped and comes back as
/// it is. Empty data is an event, too.
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
/// When `out` is of a fixed size and too small. A `Vec<u8>` and a `BytesMut` grow.
pub fn encode(name: Option<EventName<'_>>, data: &str, out: &mut impl BufMut) {
    if let Some(EventName(name)) = name {
        out.put_slice(b"event: ");
        out.put_slice(name.as_bytes());
        out.put_slice(b"\n");
    }
    lines(b"data: ", data, out);
}

/// Appends a comment to `out`, which clients ignore: it keeps a silent connection alive. Each line of `text` becomes
/// one of the comment. Only for between events.
///
/// ```
/// let mut out = Vec::new();
/// sluicegate_sse::comment("keep-alive", &mut out);
/// assert_eq!(out, b": keep-alive\n\n");
/// ```
///
/// # Panics
/// As [`encode`].
pub fn comment(text: &str, out: &mut impl BufMut) {
    lines(b": ", text, out);
}

/// The name of an event: a text that stays on its line.
///
/// Names are constants as a rule, and then [`EventName::from_static`] checks them when the program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventName<'a>(&'a str);

/// Why a text cannot be the name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// It is empty: clients would take the event for one without a name.
    Empty,
    /// It has a CR, an LF or a NUL.
    Character,
}

impl<'a> EventName<'a> {
    /// Checks a name that is known only when the program runs.
    ///
    /// # Errors
    /// When `name` is empty or has a CR, LF or NUL. Such a name is a bug or an attack, so it is never escaped.
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

    /// The name.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

impl EventName<'static> {
    /// A name written in the program. Put it into a `const`, so that a bad one does not compile:
    ///
    /// ```compile_fail
    /// const BAD: sluicegate_sse::EventName = sluicegate_sse::EventName::from_static("bad\nname");
    /// ```
    ///
    /// # Panics
    /// When [`EventName::new`] refuses it.
    #[must_use]
    pub const fn from_static(name: &'static str) -> Self {
        match Self::new(name) {
            Ok(name) => name,
            Err(_) => panic!("an event's name is not empty and has no CR, LF or NUL"),
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the name of an event is empty",
            Self::Character => "the name of an event has a CR, an LF or a NUL",
        })
    }
}

impl std::error::Error for NameError {}

/// Each line of `text` behind `lead`, and a blank line.
fn lines(lead: &[u8], text: &str, out: &mut impl BufMut) {
    let mut rest = Some(text.as_bytes());
    while let Some(text) = rest {
        let line;
        (line, rest) = line::split(text);
        out.put_slice(lead);
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
        assert_eq!(EventName::new("response.created").map(EventName::as_str), Ok("response.created"));
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
