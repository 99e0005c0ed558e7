//! Parsing of API keys from request headers, and the reasons for denying a request.

use std::fmt;

use crate::{Key, KeyError};

/// The keys presented by a request, in the order in which they are tried; at least one.
#[derive(Debug)]
pub struct Credentials {
    first: Key,
    second: Option<Key>,
}

/// The reason why a request is denied. `Display` is meant for the client and never repeats the
/// client's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denied {
    /// The request carries no key. The client is at fault and has to send one, unless a proxy on
    /// the way has removed it.
    Missing,
    /// A header that should carry a key is malformed. The client is at fault and has to send the
    /// header once, with a valid key.
    Malformed(Malformed),
    /// The key is unknown or expired; clients cannot distinguish the two. The client is at fault
    /// and has to get a valid key from the operator.
    Invalid,
}

/// The reason why a header that should carry a key is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// The header occurs more than once, and a proxy on the way could have read a different key.
    /// The client or such a proxy is at fault: the header has to be sent once.
    Repeated,
    /// `Authorization` does not begin with `Bearer` and a space. The client is at fault and has to
    /// use this scheme.
    Scheme,
    /// The value is not a valid key. The client is at fault and has to send the key as it was
    /// issued.
    Key(KeyError),
}

impl Credentials {
    /// Parses the keys of a request from the values of all its `Authorization` and `x-api-key`
    /// headers. Pass no `x-api-key` values for endpoints that do not accept that header.
    ///
    /// The scheme `Bearer` is case-insensitive, and white space around scheme and key is ignored. A
    /// blank value counts as absent. If both headers are present, the `Authorization` key is tried
    /// first. A malformed value is ignored if the other header holds a valid key, since clients may
    /// send credentials of a proxy or a vendor there.
    ///
    /// # Errors
    /// Returns [`Denied::Missing`] if no header has a value, and [`Denied::Malformed`] if a header
    /// is repeated or no header holds a valid key.
    pub fn from_headers<'a>(
        authorization: impl IntoIterator<Item = &'a [u8]>,
        api_key: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, Denied> {
        let bearer = single(authorization)?.map(parse_bearer);
        let api_key = single(api_key)?.map(parse_key);
        match (bearer, api_key) {
            (Some(Ok(first)), second) => Ok(Self {
                first,
                second: second.and_then(Result::ok),
            }),
            (_, Some(Ok(first))) => Ok(Self {
                first,
                second: None,
            }),
            (Some(Err(wrong)), _) | (None, Some(Err(wrong))) => Err(Denied::Malformed(wrong)),
            (None, None) => Err(Denied::Missing),
        }
    }

    /// Iterates over the keys in the order in which they are tried.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.second)
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "No API key was given: expected the header 'Authorization: Bearer <key>'.",
            ),
            Self::Malformed(wrong) => wrong.fmt(f),
            Self::Invalid => f.write_str("The API key is not valid."),
        }
    }
}

impl std::error::Error for Denied {}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated => {
                f.write_str("The header that carries the API key was sent more than once.")
            }
            Self::Scheme => {
                f.write_str("The Authorization header does not have the form 'Bearer <key>'.")
            }
            Self::Key(error) => write!(f, "The API key {error}."),
        }
    }
}

/// Returns the single value, trimmed, or `None` if it is missing or blank. Several values are an
/// error.
fn single<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<&'a [u8]>, Denied> {
    let mut values = values.into_iter();
    let value = values.next().map(trim);
    match values.next() {
        Some(_) => Err(Denied::Malformed(Malformed::Repeated)),
        None => Ok(value.filter(|value| !value.is_empty())),
    }
}

/// Parses the key of a trimmed `Authorization` value (RFC 6750 §2.1; RFC 9110 §11.1 for the case of
/// the scheme).
fn parse_bearer(value: &[u8]) -> Result<Key, Malformed> {
    match value.split_at_checked(SCHEME.len()) {
        Some((scheme, [])) if scheme.eq_ignore_ascii_case(SCHEME) => {
            Err(Malformed::Key(KeyError::Empty))
        }
        Some((scheme, rest @ [b' ' | b'\t', ..])) if scheme.eq_ignore_ascii_case(SCHEME) => {
            parse_key(trim(rest))
        }
        _ => Err(Malformed::Scheme),
    }
}

fn parse_key(text: &[u8]) -> Result<Key, Malformed> {
    Key::parse(text).map_err(Malformed::Key)
}

/// Strips leading and trailing spaces and tabs, the only white space allowed in header values.
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
        let credentials =
            Credentials::from_headers(authorization, api_key.iter().map(|value| value.as_bytes()))?;
        Ok(credentials
            .keys()
            .map(|key| key.expose().to_owned())
            .collect())
    }

    fn malformed(authorization: &str) -> Malformed {
        match read(&[authorization], &[]) {
            Err(Denied::Malformed(wrong)) => wrong,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_scheme_may_be_in_any_case_and_spaces_do_not_matter() {
        for value in [
            "Bearer k1",
            "bearer k1",
            "BEARER k1",
            "  Bearer \t k1\t ",
            "bEaReR\tk1",
        ] {
            assert_eq!(read(&[value], &[]).unwrap(), ["k1"], "{value:?}");
        }
    }

    /// An `Authorization` value that is not a valid bearer key is rejected with the specific
    /// reason.
    #[test]
    fn a04_each_kind_of_invalid_bearer_key_has_its_own_error() {
        for value in [
            "Basic dXNlcjpwdw==",
            "Bearerk1",
            "Bear",
            "Digest",
            "k1",
            "Bearer:k1",
            "Bearer\u{a0}k1",
            "\u{e4}earer k1",
        ] {
            assert_eq!(malformed(value), Malformed::Scheme, "{value:?}");
        }
        assert_eq!(malformed("Bearer"), Malformed::Key(KeyError::Empty));
        assert_eq!(malformed("bearer \t "), Malformed::Key(KeyError::Empty));
        assert_eq!(
            malformed("Bearer k1 k2"),
            Malformed::Key(KeyError::Character)
        );
        assert_eq!(
            malformed("Bearer k1\0"),
            Malformed::Key(KeyError::Character)
        );
        assert_eq!(
            malformed("Bearer schl\u{fc}ssel"),
            Malformed::Key(KeyError::Character)
        );
        assert_eq!(
            malformed(&format!("Bearer {}", "k".repeat(65_536))),
            Malformed::Key(KeyError::TooLong)
        );
    }

    #[test]
    fn blank_headers_are_absent() {
        for (authorization, api_key) in [(&[][..], &[][..]), (&[""], &[]), (&["  "], &["\t"])] {
            assert_eq!(read(authorization, api_key), Err(Denied::Missing));
        }
    }

    /// A repeated header is rejected, whatever other keys the request carries.
    #[test]
    fn a01_repeated_header_is_rejected_despite_other_keys() {
        let repeated = Err(Denied::Malformed(Malformed::Repeated));
        assert_eq!(read(&["Bearer k1", "Bearer k1"], &[]), repeated);
        assert_eq!(read(&["Bearer k1", ""], &["k2"]), repeated);
        assert_eq!(read(&["Bearer k1"], &["k2", "k3"]), repeated);
    }

    #[test]
    fn api_key_header_follows_and_replaces_an_unreadable_bearer() {
        assert_eq!(read(&["Bearer k1"], &["k2"]).unwrap(), ["k1", "k2"]);
        assert_eq!(read(&[], &[" k2 "]).unwrap(), ["k2"]);
        assert_eq!(read(&["Basic dXNlcjpwdw=="], &["k2"]).unwrap(), ["k2"]);
        assert_eq!(read(&["Bearer "], &["k2"]).unwrap(), ["k2"]);
        assert_eq!(read(&["Bearer k1"], &["k 2"]).unwrap(), ["k1"]);
        assert_eq!(
            read(&[], &["k 2"]),
            Err(Denied::Malformed(Malformed::Key(KeyError::Character)))
        );
    }

    #[test]
    fn a_refusal_repeats_nothing_that_was_sent() {
        let message = |authorization: &str| read(&[authorization], &[]).unwrap_err().to_string();
        assert_eq!(
            message("Basic hunter2"),
            "The Authorization header does not have the form 'Bearer <key>'."
        );
        assert_eq!(
            message("Bearer hunter 2"),
            "The API key has a character that is not visible ASCII."
        );
        assert_eq!(
            message(""),
            "No API key was given: expected the header 'Authorization: Bearer <key>'."
        );
    }
}
