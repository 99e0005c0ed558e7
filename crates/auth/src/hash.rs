//! SHA-256 hashes of keys, which are stored, looked up and compared in place of the keys.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::Key;

/// The SHA-256 hash of a key, formatted as `sha256:` and 64 hexadecimal digits.
///
/// An unsalted hash is sufficient for generated keys, whose 256 random bits cannot be guessed. A
/// short key chosen by hand can be guessed from its hash.
///
/// Equality is checked in constant time.
///
/// ```
/// use sluicegate_auth::{Key, KeyHash};
///
/// let hash = KeyHash::of(&Key::parse("abc")?);
/// let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// assert_eq!((hash.to_string().as_str(), text.parse()), (text, Ok(hash)));
/// # Ok::<(), sluicegate_auth::KeyError>(())
/// ```
#[derive(Clone, Copy)]
pub struct KeyHash([u8; 32]);

/// The reason why a text is not a valid [`KeyHash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyHashError {
    /// The text does not begin with `sha256:`.
    Algorithm,
    /// The number of digits is not 64; contains the number found.
    Length(usize),
    /// A character after the prefix is not a hexadecimal digit.
    Digit(char),
}

impl KeyHash {
    /// Computes the hash of `key`.
    #[must_use]
    pub fn of(key: &Key) -> Self {
        Self(Sha256::digest(key.expose()).into())
    }

    /// Returns the bytes by which a key ring sorts its hashes. Comparing them is not constant-time.
    pub(crate) fn order(&self) -> &[u8; 32] {
        &self.0
    }
}

impl ConstantTimeEq for KeyHash {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl PartialEq for KeyHash {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for KeyHash {}

impl FromStr for KeyHash {
    type Err = KeyHashError;

    fn from_str(text: &str) -> Result<Self, KeyHashError> {
        let digits = text
            .strip_prefix(ALGORITHM)
            .ok_or(KeyHashError::Algorithm)?;
        if let Some(other) = digits.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(KeyHashError::Digit(other));
        }
        let mut bytes = [0; 32];
        if digits.len() != bytes.len() * 2 {
            return Err(KeyHashError::Length(digits.len()));
        }
        for (i, byte) in bytes.iter_mut().enumerate() {
            // Never fails: all of the digits are hexadecimal.
            *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap_or_default();
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALGORITHM)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHash({self})")
    }
}

impl fmt::Display for KeyHashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected 'sha256:' and 64 hexadecimal digits, but ")?;
        match self {
            Self::Algorithm => f.write_str("it does not begin with 'sha256:'"),
            Self::Length(found) => write!(f, "it has {found} digits"),
            Self::Digit(found) => write!(f, "it has {found:?} among the digits"),
        }
    }
}

impl std::error::Error for KeyHashError {}

const ALGORITHM: &str = "sha256:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_hash_error_names_the_defect() {
        let message = |text: &str| text.parse::<KeyHash>().unwrap_err().to_string();
        let digits = "0".repeat(64);
        let expected = "expected 'sha256:' and 64 hexadecimal digits, but";
        assert_eq!(
            message(&digits),
            format!("{expected} it does not begin with 'sha256:'")
        );
        assert_eq!(
            message(&format!("sha512:{digits}")),
            format!("{expected} it does not begin with 'sha256:'")
        );
        assert_eq!(message("sha256:abc"), format!("{expected} it has 3 digits"));
        assert_eq!(
            message(&format!("sha256:{digits}0")),
            format!("{expected} it has 65 digits")
        );
        assert_eq!(
            message("sha256:12 4"),
            format!("{expected} it has ' ' among the digits")
        );
        assert_eq!(
            message("sha256:\u{e4}"),
            format!("{expected} it has '\u{e4}' among the digits")
        );
    }

    #[test]
    fn the_hashes_of_two_keys_differ() {
        let hash = |key: &str| KeyHash::of(&Key::parse(key).unwrap());
        assert_eq!(hash("one"), hash("one"));
        assert_ne!(hash("one"), hash("two"));
    }

    #[test]
    fn capital_digits_are_read_and_small_ones_written() {
        let hash: KeyHash = format!("sha256:{}", "aF".repeat(32)).parse().unwrap();
        assert_eq!(hash.to_string(), format!("sha256:{}", "af".repeat(32)));
    }
}
