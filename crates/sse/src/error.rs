//! Errors of decoding a stream: a line or an event over its limit, and truncation.

use std::fmt;

/// A fatal decoding error. Exceeded limits are the only errors, since any byte sequence is a valid
/// event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A line has more than `limit` bytes, excluding its line end.
    LineTooLong {
        /// The configured [`Limits::line`](crate::Limits::line).
        limit: usize,
    },
    /// The lines of one event have more than `limit` bytes, excluding the last line end.
    EventTooLong {
        /// The configured [`Limits::event`](crate::Limits::event).
        limit: usize,
    },
}

/// The stream ended inside an event. The incomplete event is discarded, as the standard requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineTooLong { limit } => {
                write!(f, "a line of the event stream has more than {limit} bytes")
            }
            Self::EventTooLong { limit } => {
                write!(f, "an event of the stream has more than {limit} bytes")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the event stream ended inside an event")
    }
}

impl std::error::Error for Truncated {}
