//! Properties of keys and rings: only the exact key matches an entry, and no key is printed.

use proptest::prelude::*;
use sluicegate_auth::{Credentials, Denied, Entry, Key, KeyHash, KeyRing, Scope};

fn credentials(key: &str) -> Credentials {
    Credentials::from_headers([format!("Bearer {key}").as_bytes()], []).expect("a readable header")
}

fn ring(key: &Key) -> KeyRing {
    KeyRing::new([Entry::new("a", KeyHash::of(key), Scope::Text.into())]).expect("a good ring")
}

proptest! {
    /// A key that differs in one byte is rejected.
    #[test]
    fn a03_a_key_with_one_other_byte_is_refused(bits: [u8; 32], place: prop::sample::Index, other in b'!'..=b'~') {
        let key = Key::from_bits(bits);
        let mut near = key.expose().as_bytes().to_vec();
        let place = place.index(near.len());
        prop_assume!(near[place] != other);
        near[place] = other;
        let near = String::from_utf8(near).unwrap();
        let ring = ring(&key);
        prop_assert_eq!(ring.admit(&credentials(&near), 0), Err(Denied::Invalid));
        prop_assert!(ring.admit(&credentials(key.expose()), 0).is_ok());
    }

    /// A key that shares a prefix with a known key is rejected.
    #[test]
    fn a03_key_sharing_a_prefix_with_a_valid_key_is_rejected(bits: [u8; 32], last in "[!-~]") {
        let key = Key::from_bits(bits);
        let (ring, text) = (ring(&key), key.expose());
        let (head, tail) = text.split_at(text.len() - 1);
        prop_assume!(tail != last);
        for near in [format!("{head}{last}"), head.to_owned(), format!("{text}{last}"), text[..20].to_owned()] {
            prop_assert_eq!(ring.admit(&credentials(&near), 0), Err(Denied::Invalid));
        }
    }

    /// An expired key and an unknown key are rejected with the same error.
    #[test]
    fn a02_the_expired_and_the_unknown_look_the_same(
        known: [u8; 32], unknown: [u8; 32], expires: i64, late in 0..1000i64,
    ) {
        let mut entry = Entry::new("a", KeyHash::of(&Key::from_bits(known)), Scope::Text.into());
        entry.expires = Some(expires);
        let ring = KeyRing::new([entry]).unwrap();
        let refusal = |bits| {
            let key = Key::from_bits(bits);
            ring.admit(&credentials(key.expose()), expires.saturating_add(late)).unwrap_err()
        };
        prop_assert_eq!(refusal(known), refusal(unknown));
    }

    /// The debug output of keys, credentials and rings never contains the secret.
    #[test]
    fn a12_debug_never_contains_the_secret(text in "[!-~]{1,80}") {
        let key = Key::parse(&text).unwrap();
        for output in [format!("{key:?}"), format!("{:?}", credentials(&text)), format!("{:?}", ring(&key))] {
            // Short texts may occur in the surrounding output by chance; check the part beyond the
            // sixth that is shown.
            let hidden = &text[(text.len() / 6).min(7)..];
            prop_assert!(hidden.len() < 4 || !output.contains(hidden), "{}", output);
        }
    }

    #[test]
    fn every_hash_is_read_back_from_its_text(bits: [u8; 32]) {
        let hash = KeyHash::of(&Key::from_bits(bits));
        prop_assert_eq!(hash.to_string().parse(), Ok(hash));
    }

    #[test]
    fn any_text_is_a_hash_or_a_clear_error(text in "(sha256:)?[0-9a-fA-F]{60,66}|\\PC{0,80}") {
        match text.parse::<KeyHash>() {
            Ok(hash) => prop_assert_eq!(hash.to_string(), text.to_lowercase()),
            Err(error) => prop_assert!(error.to_string().starts_with("expected 'sha256:'")),
        }
    }
}
