#![doc = include_str!("../README.md")]

mod decoder;

use std::fmt;

pub use self::decoder::{DecodeError, Decoder, PIECE};

/// A content coding that can be decoded (RFC 9110 §8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`, also named `x-gzip`: RFC 1952.
    Gzip,
    /// `deflate`: the zlib format of RFC 1950.
    Deflate,
    /// `zstd`: RFC 8878.
    Zstd,
}

/// The content has another coding, or several: the beginning of their names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported content encoding '{0}'")]
pub struct Unsupported(String);

impl Coding {
    /// Reads the values of all `Content-Encoding` headers of a message. Returns `None` if the content
    /// is not encoded.
    ///
    /// # Errors
    /// When a coding is not supported, or there are several: each would multiply the size again.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Self>, Unsupported> {
        let mut codings = values
            .into_iter()
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            // Empty elements of a list are ignored (RFC 9110 §5.6.1.2).
            .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"));
        match (codings.next(), codings.next()) {
            (None, _) => Ok(None),
            (Some(coding), None) => Self::named(coding).map(Some),
            (Some(first), Some(second)) => {
                Err(Unsupported::named(&[first, b", ", second].concat()))
            }
        }
    }

    /// Returns the coding of this name. Case does not matter (RFC 9110 §8.4.1).
    fn named(name: &[u8]) -> Result<Self, Unsupported> {
        match &*name.to_ascii_lowercase() {
            b"gzip" | b"x-gzip" => Ok(Self::Gzip),
            b"deflate" => Ok(Self::Deflate),
            b"zstd" => Ok(Self::Zstd),
            _ => Err(Unsupported::named(name)),
        }
    }
}

impl Unsupported {
    fn named(codings: &[u8]) -> Self {
        Self(
            codings
                .escape_ascii()
                .to_string()
                .chars()
                .take(MAX_NAME)
                .collect(),
        )
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        })
    }
}

/// The value of `Accept-Encoding` that lists everything that [`Coding::of`] accepts.
pub const ACCEPTED: &str = "zstd, gzip, deflate, identity";
/// The longest name of an unsupported coding that is quoted, in characters.
const MAX_NAME: usize = 40;
