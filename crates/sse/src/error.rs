//! How reading a stream goes wrong: a line or an event that is too long, or an end too early.

use std::fmt;

/// Why a stream is not read any further. Nothing else is an error: any bytes are an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A line has more than `limit` bytes, its end not counted.
    LineTooLong {
        /// [`Limits::line`](crate::Limits::line).
        limit: usize,
    },
    /// The lines of one event have more than `limit` bytes, the last line's end not counted.
    EventTooLong {
        /// [`Limits::event`](crate::Limits::event).
        limit: usize,
    },
}

/// The stream ended inside an event: what had come of it is discarded, as the standard says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineTooLong { limit } => write!(f, "a line of the event stream has more than {limit} bytes"),
            Self::EventTooLong { limit } => write!(f, "an event of the stream has more than {limit} bytes"),
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
