//! API keys in plain text, which are never printed.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Maximum length of a key in bytes. Generated keys have 46; keys chosen by an operator may be
/// longer.
pub const MAX_KEY: usize = 4096;

/// An API key: 1 to [`MAX_KEY`] visible ASCII characters.
///
/// It has no `Display`, and its `Debug` shows at most a few leading characters. It does not
/// implement `PartialEq`, because a plain comparison leaks through its timing how much of a guess
/// was right. Compare the [`KeyHash`](crate::KeyHash) of two keys instead.
pub struct Key(Box<str>);

/// The reason why a text is not a valid key. `Display` completes "the key …" and never repeats the
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is empty. The client or the operator who has given it is at fault and has to give a
    /// key.
    Empty,
    /// The text has more than [`MAX_KEY`] bytes. The client or the operator who has given it is at
    /// fault and has to give a shorter key.
    TooLong,
    /// The text contains white space, a control character or a non-ASCII character. The client or
    /// the operator who has given it is at fault and has to give a key of visible ASCII characters.
    Character,
}

impl Key {
    /// Creates a key from 256 random bits, which the caller must take from the system's random
    /// number generator.
    ///
    /// ```
    /// let key = sluicegate_auth::Key::from_bits([0; 32]);
    /// assert_eq!(key.expose(), "sg_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    /// ```
    #[must_use]
    pub fn from_bits(bits: [u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)).into())
    }

    /// Parses a key. The caller trims surrounding white space.
    ///
    /// # Errors
    /// Returns an error if the text is empty, too long or not visible ASCII.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        let text = text.as_ref();
        match str::from_utf8(text) {
            Ok("") => Err(KeyError::Empty),
            _ if text.len() > MAX_KEY => Err(KeyError::TooLong),
            Ok(word) if text.iter().all(u8::is_ascii_graphic) => Ok(Self(word.into())),
            _ => Err(KeyError::Character),
        }
    }

    /// Returns the secret, to show it to its owner or to send it. It must never be logged.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to identify generated keys, but next to nothing of a short key.
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

/// Prefix of generated keys, recognizable by people and secret scanners.
const PREFIX: &str = "sg_";
/// Maximum number of leading characters shown by `Debug`: the prefix and four more.
const MAX_SHOWN: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    /// The debug output of a key does not reveal it.
    #[test]
    fn a12_debug_shows_a_sixth_at_most() {
        let shown = |text: &str| format!("{:?}", Key::parse(text).unwrap());
        assert_eq!(
            shown("sg_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdE"),
            "Key(sg_AbCd…)"
        );
        assert_eq!(shown("hunter2"), "Key(h…)");
        assert_eq!(shown("12345"), "Key(…)");
        assert_eq!(shown(&"k".repeat(MAX_KEY)), "Key(kkkkkkk…)");
    }

    #[test]
    fn each_kind_of_invalid_key_has_its_own_error() {
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
