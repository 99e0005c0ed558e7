//! Properties of header parsing: any input is accepted, and the keys found are those sent.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_auth::{Credentials, Denied, Key};

/// Generates header values, most of them nearly valid.
fn header() -> impl Strategy<Value = Vec<u8>> {
    let scheme = prop_oneof!["(?i)bearer", "[Bb]asic", "\\PC{0,8}"];
    let nearly = (scheme, "[ \t]{0,3}", "[!-~]{0,40}", "[ \t]{0,2}")
        .prop_map(|(a, b, c, d)| (a + &b + &c + &d).into());
    prop_oneof![3 => nearly, 1 => vec(any::<u8>(), 0..64)]
}

/// A reference implementation of RFC 6750 based on `str` methods instead of byte patterns.
fn reference(header: &[u8]) -> Option<&str> {
    let text = str::from_utf8(header).ok()?.trim_matches([' ', '\t']);
    let (scheme, key) = text.split_once([' ', '\t'])?;
    let key = key.trim_matches([' ', '\t']);
    let visible = !key.is_empty() && key.chars().all(|c| ('!'..='~').contains(&c));
    (scheme.to_lowercase() == "bearer" && visible).then_some(key)
}

fn exposed(credentials: Result<Credentials, Denied>) -> Vec<String> {
    credentials
        .iter()
        .flat_map(Credentials::keys)
        .map(|key| key.expose().to_owned())
        .collect()
}

proptest! {
    /// Any `Authorization` header is parsed as RFC 6750 specifies.
    #[test]
    fn a04_any_header_is_read_as_the_reference_reads_it(header in header()) {
        let found = exposed(Credentials::from_headers([header.as_slice()], []));
        prop_assert_eq!(found, Vec::from_iter(reference(&header)));
    }

    #[test]
    fn any_second_header_adds_its_key_or_nothing(header in header(), other in header()) {
        let expected = reference(&header).map(str::to_owned).into_iter();
        let second = Key::parse(other.trim_ascii()).ok().map(|key| key.expose().to_owned());
        // Form feeds and line ends are white space to `trim_ascii`, but not in a header.
        prop_assume!(!other.iter().any(|byte| b"\n\r\x0c".contains(byte)));
        let found = exposed(Credentials::from_headers([header.as_slice()], [other.as_slice()]));
        prop_assert_eq!(found, expected.chain(second).collect::<Vec<_>>());
    }

    /// The error for a rejected request never contains the key that was sent.
    #[test]
    fn a04_errors_never_contain_the_presented_key(secret in "[!-~]{12,40}", scheme in "Basic|Digest|Bearer x|Token|") {
        let header = format!("{scheme} {secret}");
        let error = Credentials::from_headers([header.as_bytes()], []).unwrap_err();
        for text in [error.to_string(), format!("{:?}", error)] {
            prop_assert!(!text.contains(&secret), "{}", text);
        }
    }
}
