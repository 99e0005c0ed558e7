//! Ids of calls in the forms that each side accepts.
//!
//! Every server makes up ids in its own way, such as `functions.get_weather:0`. An id that a client
//! would not accept is encoded, so that the server gets its own id back with the result.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// Returns an id that matches `[a-zA-Z0-9_-]{1,64}`, which every protocol accepts. Another id is
/// encoded so that [`original`] returns it, or replaced by a digest if it is too long for that.
#[must_use]
pub fn plain(id: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if is_short(id) && id.bytes().all(is_plain) && !id.starts_with(PREFIX) {
        return id.to_owned();
    }
    let encoded = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(id));
    if !id.is_empty() && is_short(&encoded) {
        encoded
    } else {
        digest(id)
    }
}

/// Returns the id that [`plain`] encoded, or `id` itself if it is not an encoded one.
#[must_use]
pub fn original(id: &str) -> String {
    let decoded = id
        .strip_prefix(PREFIX)
        .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok());
    decoded
        .filter(|decoded| plain(decoded) == id)
        .unwrap_or_else(|| id.to_owned())
}

/// Returns the server's own id, unless it is longer than 64 characters, which OpenAI refuses
/// (<https://platform.openai.com/docs/api-reference/responses/create>).
#[must_use]
pub fn own(id: &str) -> String {
    let id = original(id);
    if is_short(&id) { id } else { digest(&id) }
}

/// Returns an id of nine letters and digits, the only form that Mistral accepts
/// (<https://docs.mistral.ai/capabilities/function_calling>). It is the same for a call and its
/// result.
#[must_use]
pub fn nine(id: &str) -> String {
    let id = original(id);
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id;
    }
    Sha256::digest(&id)
        .iter()
        .take(9)
        .map(|byte| char::from(DIGITS[usize::from(*byte) % DIGITS.len()]))
        .collect()
}

/// Returns an id that is a part of the SHA-256 of `id`.
#[must_use]
pub fn digest(id: &str) -> String {
    let half = Sha256::digest(id).into_iter().take(16);
    wire::id(
        "call",
        half.fold(0, |bits, byte| bits << 8 | u128::from(byte)),
    )
}

fn is_short(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len())
}

/// The beginning of an encoded id.
const PREFIX: &str = "sgc_";
/// The longest id, in bytes.
const MAX_ID: usize = 64;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_that_not_everybody_takes_are_encoded_or_hashed() {
        let (long, fits) = ("a".repeat(65), "a".repeat(64));
        assert_eq!(plain("call_a-1"), "call_a-1");
        assert_eq!(plain(&fits), fits);
        // The base64url form of the id.
        assert_eq!(plain("functions.f:0"), "sgc_ZnVuY3Rpb25zLmY6MA");
        assert_eq!(original("sgc_ZnVuY3Rpb25zLmY6MA"), "functions.f:0");
        assert_eq!(plain(&long).len(), 37);
        // The SHA-256 of an empty message, cut to half of its digits.
        assert_eq!(plain(""), "call_e3b0c44298fc1c149afbf4c8996fb924");
        for foreign in ["sgc_", "sgc_!", "sgc_Y2FsbA", "call_1"] {
            assert_eq!(original(foreign), foreign);
        }
    }

    #[test]
    fn nine_letters_stay_and_others_become_nine() {
        assert_eq!(nine("aB3dE6gH9"), "aB3dE6gH9");
        let id = nine("toolu_01A09q90qw90lq917835lq9");
        assert_eq!((id.len(), &id), (9, &nine("toolu_01A09q90qw90lq917835lq9")));
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    }

    proptest! {
        #[test]
        fn an_encoded_id_comes_back(id in ".{1,20}|sgc_[a-zA-Z0-9]{0,9}") {
            let sent = plain(&id);
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            prop_assert!(sent.len() <= 64 && sent.bytes().all(is_plain));
            prop_assert!(original(&sent) == id || sent == digest(&id));
        }
    }
}
