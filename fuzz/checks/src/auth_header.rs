//! Any bytes as the value of an `Authorization` header: a key is found where RFC 6750 has one, and
//! nowhere else.

use auth::{Credentials, Denied, Malformed};

/// Checks one input; a panic is a finding.
pub fn check(header: &[u8]) {
    let found = Credentials::from_headers([header], []);
    match (&found, reference(header)) {
        (Ok(shown), Some(expected)) => {
            let keys: Vec<_> = shown.keys().map(auth::Key::expose).collect();
            assert_eq!(
                keys,
                [expected],
                "the key is the header's own text, trimmed"
            );
        }
        (Err(Denied::Missing), None) => assert!(trim(header).is_empty()),
        (Err(denied), None) => {
            assert!(matches!(denied, Denied::Malformed(_)) && !trim(header).is_empty());
        }
        (found, expected) => panic!("found {found:?}, expected {expected:?}"),
    }
    let twice = Credentials::from_headers([header, header], []);
    assert!(matches!(twice, Err(Denied::Malformed(Malformed::Repeated))));
}

/// The key of a header by the grammar: a scheme, white space, one visible word.
fn reference(header: &[u8]) -> Option<&str> {
    let text = str::from_utf8(trim(header)).ok()?;
    let words: Vec<_> = text
        .split([' ', '\t'])
        .filter(|word| !word.is_empty())
        .collect();
    let [scheme, key] = words[..] else {
        return None;
    };
    let readable = key.len() <= auth::MAX_KEY && key.chars().all(|c| ('!'..='~').contains(&c));
    (scheme.to_lowercase() == "bearer" && readable).then_some(key)
}

fn trim(header: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = header
        .iter()
        .position(|byte| !blank(byte))
        .unwrap_or(header.len());
    let end = header
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(start, |last| last + 1);
    &header[start..end]
}
