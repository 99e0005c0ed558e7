//! The keys that a request shows, and why a request is turned away.

use std::fmt;

use crate::{Key, KeyError};

/// The keys that a request shows, in the order in which they are tried: at least one.
#[derive(Debug)]
pub struct Credentials {
    first: Key,
    second: Option<Key>,
}

/// Why a request is not admitted. Its `Display` is for the caller and repeats nothing that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denied {
    /// It shows no key.
    Missing,
    /// What it shows cannot be read as a key.
    Malformed(Malformed),
    /// Its key is not known, or not any more: which of the two is not told.
    Invalid,
}

/// What is wrong with a header that should carry a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// The same header is there more than once, so that others on the way could have read another key.
    Repeated,
    /// `Authorization` does not begin with `Bearer` and a space.
    Scheme,
    /// What stands in the key's place is no key.
    Key(KeyError),
}

impl Credentials {
    /// Reads the keys of a request from the values of all its `Authorization` and `x-api-key` headers; give no
    /// `x-api-key` values where that header is not taken (wire-reference §0.4).
    ///
    /// The scheme `Bearer` may be written in any case, and spaces around scheme and key do not matter. A blank
    /// value counts as absent. With both headers the `Authorization` key is tried first; one that is unreadable
    /// gives way to the other, since clients may carry a proxy's or a vendor's credentials there.
    ///
    /// # Errors
    /// [`Denied::Missing`] when no header carries anything, [`Denied::Malformed`] when one of them is repeated or
    /// none can be read as a key.
    pub fn from_headers<'a>(
        authorization: impl IntoIterator<Item = &'a [u8]>,
        api_key: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, Denied> {
        let bearer = only(authorization)?.map(bearer);
        let api_key = only(api_key)?.map(key);
        match (bearer, api_key) {
            (Some(Ok(first)), second) => Ok(Self { first, second: second.and_then(Result::ok) }),
            (_, Some(Ok(first))) => Ok(Self { first, second: None }),
            (Some(Err(wrong)), _) | (None, Some(Err(wrong))) => Err(Denied::Malformed(wrong)),
            (None, None) => Err(Denied::Missing),
        }
    }

    /// Each key, in the order in which they are tried.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.second)
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("No API key was given: expected the header 'Authorization: Bearer <key>'."),
            Self::Malformed(wrong) => wrong.fmt(f),
            Self::Invalid => f.write_str("The API key is not valid."),
        }
    }
}

impl std::error::Error for Denied {}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated => f.write_str("The header that carries the API key was sent more than once."),
            Self::Scheme => f.write_str("The Authorization header does not have the form 'Bearer <key>'."),
            Self::Key(error) => write!(f, "The API key {error}."),
        }
    }
}

/// The one value among `values`, trimmed; `None` when there is none or it is blank.
fn only<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<&'a [u8]>, Denied> {
    let mut values = values.into_iter();
    let value = values.next().map(trim);
    match values.next() {
        Some(_) => Err(Denied::Malformed(Malformed::Repeated)),
        None => Ok(value.filter(|value| !value.is_empty())),
    }
}

/// The key of a trimmed `Authorization` value (RFC 6750 §2.1; RFC 9110 §11.1 for the scheme's case).
fn bearer(value: &[u8]) -> Result<Key, Malformed> {
    match value.split_at_checked(SCHEME.len()) {
        Some((scheme, [])) if scheme.eq_ignore_ascii_case(SCHEME) => Err(Malformed::Key(KeyError::Empty)),
        Some((scheme, rest @ [b' ' | b'\t', ..])) if scheme.eq_ignore_ascii_case(SCHEME) => key(trim(rest)),
        _ => Err(Malformed::Scheme),
    }
}

fn key(text: &[u8]) -> Result<Key, Malformed> {
    Key::parse(text).map_err(Malformed::Key)
}

/// Without the spaces and tabs around it, which are all the white space that a header value knows.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

const SCHEME: &[u8] = b"bearer";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(authorization: &[&str], api_key: &[&str]) -> Result<Vec<String>, Denied> {
        let authorization = authorization.iter().map(|value| value.as_bytes());
        let shown = Credentials::from_headers(authorization, api_key.iter().map(|value| value.as_bytes()))?;
        Ok(shown.keys().map(|key| key.expose().to_owned()).collect())
    }

    fn malformed(authorization: &str) -> Malformed {
        match read(&[authorization], &[]) {
            Err(Denied::Malformed(wrong)) => wrong,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_scheme_may_be_in_any_case_and_spaces_do_not_matter() {
        for value in ["Bearer k1", "bearer k1", "BEARER k1", "  Bearer \t k1\t ", "bEaReR\tk1"] {
            assert_eq!(read(&[value], &[]).unwrap(), ["k1"], "{value:?}");
        }
    }

    /// What is no bearer key is refused, whatever it is.
    #[test]
    fn a04_what_is_no_bearer_key_is_told_apart() {
        for value in ["Basic dXNlcjpwdw==", "Bearerk1", "Bear", "k1", "Bearer:k1", "Bearer\u{a0}k1", "\u{e4}earer k1"] {
            assert_eq!(malformed(value), Malformed::Scheme, "{value:?}");
        }
        assert_eq!(malformed("Bearer"), Malformed::Key(KeyError::Empty));
        assert_eq!(malformed("bearer \t "), Malformed::Key(KeyError::Empty));
        assert_eq!(malformed("Bearer k1 k2"), Malformed::Key(KeyError::Character));
        assert_eq!(malformed("Bearer k1\0"), Malformed::Key(KeyError::Character));
        assert_eq!(malformed("Bearer schl\u{fc}ssel"), Malformed::Key(KeyError::Character));
        assert_eq!(malformed(&format!("Bearer {}", "k".repeat(65_536))), Malformed::Key(KeyError::TooLong));
    }

    #[test]
    fn blank_headers_are_absent() {
        for (authorization, api_key) in [(&[][..], &[][..]), (&[""], &[]), (&["  "], &["\t"])] {
            assert_eq!(read(authorization, api_key), Err(Denied::Missing));
        }
    }

    /// Two headers with keys are no key.
    #[test]
    fn a01_a_repeated_header_is_refused_whatever_else_is_there() {
        let repeated = Err(Denied::Malformed(Malformed::Repeated));
        assert_eq!(read(&["Bearer k1", "Bearer k1"], &[]), repeated);
        assert_eq!(read(&["Bearer k1", ""], &["k2"]), repeated);
        assert_eq!(read(&["Bearer k1"], &["k2", "k3"]), repeated);
    }

    #[test]
    fn the_other_header_comes_second_and_stands_in_for_an_unreadable_one() {
        assert_eq!(read(&["Bearer k1"], &["k2"]).unwrap(), ["k1", "k2"]);
        assert_eq!(read(&[], &[" k2 "]).unwrap(), ["k2"]);
        assert_eq!(read(&["Basic dXNlcjpwdw=="], &["k2"]).unwrap(), ["k2"]);
        assert_eq!(read(&["Bearer "], &["k2"]).unwrap(), ["k2"]);
        assert_eq!(read(&["Bearer k1"], &["k 2"]).unwrap(), ["k1"]);
        assert_eq!(read(&[], &["k 2"]), Err(Denied::Malformed(Malformed::Key(KeyError::Character))));
    }

    #[test]
    fn a_refusal_repeats_nothing_that_was_sent() {
        let told = |authorization: &str| read(&[authorization], &[]).unwrap_err().to_string();
        assert_eq!(told("Basic hunter2"), "The Authorization header does not have the form 'Bearer <key>'.");
        assert_eq!(told("Bearer hunter 2"), "The API key has a character that is not visible ASCII.");
        assert_eq!(told(""), "No API key was given: expected the header 'Authorization: Bearer <key>'.");
    }
}
