//! The rest of a body: its framing, and its decoding in place.

use bytes::Bytes;

use crate::http1::chunked::Chunked;
use crate::http1::decoded::Decoded;
use crate::http1::error::Invalid;

/// The rest of a body.
pub(crate) struct Body {
    pub(crate) framing: Framing,
    /// The part that was received with the head.
    pub(crate) first: Bytes,
    /// The violation that follows the received part.
    pub(crate) violation: Option<Invalid>,
}

impl Body {
    /// A body before its first byte.
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            first: Bytes::new(),
            violation: None,
        }
    }

    /// Returns true once the body was returned completely.
    pub(crate) fn is_end(&self) -> bool {
        self.framing.is_end() && self.first.is_empty() && self.violation.is_none()
    }

    /// The number of bytes that are left to be returned, if the head has declared it.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.framing {
            Framing::Length(left) => Some(left + self.first.len() as u64),
            Framing::Chunked(_) | Framing::UntilClose => None,
        }
    }
}

/// The framing of a body, and how much of it is still to come.
#[derive(Debug)]
pub(crate) enum Framing {
    /// This many bytes are left.
    Length(u64),
    /// It comes in chunks.
    Chunked(Chunked),
    /// It ends with the connection.
    UntilClose,
}

impl Framing {
    pub(crate) fn chunked() -> Self {
        Self::Chunked(Chunked::default())
    }

    /// Decodes the next bytes that were received. The data of several chunks is moved together.
    pub(crate) fn decode(&mut self, bytes: &mut [u8]) -> Decoded {
        let used = match self {
            Self::Length(left) => {
                let used = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= used as u64;
                used
            }
            Self::UntilClose => bytes.len(),
            Self::Chunked(chunked) => return chunked.decode(bytes),
        };
        Decoded {
            data: 0..used,
            used,
            violation: None,
        }
    }

    /// Returns true if the last byte of the body was decoded.
    #[must_use]
    pub(crate) fn is_end(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_end(),
            Self::UntilClose => false,
        }
    }

    /// Notes that the connection was closed.
    ///
    /// # Errors
    /// When that is not the end of the body.
    pub(crate) fn close(&mut self) -> Result<(), Invalid> {
        if !self.is_end() && !matches!(self, Self::UntilClose) {
            return Err(Invalid::Truncated);
        }
        *self = Self::Length(0);
        Ok(())
    }
}
