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
        let mut values = values.into_iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let is = |name: &str| value.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
        match values.next() {
            Some(next) => Err(Unsupported::named(&[value, b", ", next].concat())),
            None if is("identity") => Ok(None),
            None if is("gzip") || is("x-gzip") => Ok(Some(Self::Gzip)),
            None if is("deflate") => Ok(Some(Self::Deflate)),
            None if is("zstd") => Ok(Some(Self::Zstd)),
            None => Err(Unsupported::named(value)),
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
