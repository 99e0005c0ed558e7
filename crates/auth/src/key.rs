//! A key as its owner holds it: a secret that prints nowhere.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The longest key that is read, in bytes. Ours have 46; an operator's own may be longer.
pub const MAX_KEY: usize = 4096;

/// A key: 1 to [`MAX_KEY`] visible ASCII characters.
///
/// It has no `Display`, and its `Debug` shows a few leading characters at most. It cannot be compared, since a
/// plain comparison tells by its time how much was right: compare the [`KeyHash`](crate::KeyHash) of two keys.
pub struct Key(Box<str>);

/// Why a text is no key. Its `Display` completes "the key …" and never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// It has no characters.
    Empty,
    /// It has more than [`MAX_KEY`].
    TooLong,
    /// It has a space, a control character or something outside ASCII.
    Character,
}

impl Key {
    /// A new key from 256 bits that the caller drew from the system's source of randomness.
    ///
    /// ```
    /// let key = sluicegate_auth::Key::from_bits([0; 32]);
    /// assert_eq!(key.expose(), "sg_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    /// ```
    #[must_use]
    pub fn from_bits(bits: [u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)).into())
    }

    /// Takes a text as a key. Spaces around it are the caller's to trim.
    ///
    /// # Errors
    /// When the text could not travel in a header as one word.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        let text = text.as_ref();
        match str::from_utf8(text) {
            Ok("") => Err(KeyError::Empty),
            _ if text.len() > MAX_KEY => Err(KeyError::TooLong),
            Ok(word) if text.iter().all(u8::is_ascii_graphic) => Ok(Self(word.into())),
            _ => Err(KeyError::Character),
        }
    }

    /// The secret itself: to show it to its owner, or to send it. Never for a log.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to tell our own keys apart; of a short key next to nothing.
        let shown = (self.0.len() / 6).min(MAX_SHOWN);
        write!(f, "Key({}…)", self.0.get(..shown).unwrap_or_default())
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong => write!(f, "is longer than {MAX_KEY} bytes"),
            Self::Character => f.write_str("has a character that is not visible ASCII"),
        }
    }
}

impl std::error::Error for KeyError {}

/// What our own keys begin with, so that a person or a secret scanner knows one.
const PREFIX: &str = "sg_";
/// So many leading characters are shown at most: our prefix and four.
const MAX_SHOWN: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a key prints for debugging does not give it away.
    #[test]
    fn a12_debug_shows_a_sixth_at_most() {
        let shown = |text: &str| format!("{:?}", Key::parse(text).unwrap());
        assert_eq!(shown("sg_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdE"), "Key(sg_AbCd…)");
        assert_eq!(shown("hunter2"), "Key(h…)");
        assert_eq!(shown("12345"), "Key(…)");
        assert_eq!(shown(&"k".repeat(MAX_KEY)), "Key(kkkkkkk…)");
    }

    #[test]
    fn what_cannot_be_a_key_is_told_apart() {
        let wrong = |text: &[u8]| Key::parse(text).unwrap_err();
        assert_eq!(wrong(b""), KeyError::Empty);
        assert_eq!(wrong(b"a b"), KeyError::Character);
        assert_eq!(wrong(b"a\0"), KeyError::Character);
        assert_eq!(wrong("schl\u{fc}ssel".as_bytes()), KeyError::Character);
        assert_eq!(wrong(b"\xff"), KeyError::Character);
        assert_eq!(wrong(&[b'k'; MAX_KEY + 1]), KeyError::TooLong);
        assert_eq!(Key::parse([b'k'; MAX_KEY]).unwrap().expose().len(), MAX_KEY);
    }
}
