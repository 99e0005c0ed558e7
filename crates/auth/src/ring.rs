//! The set of keys known to a gateway, and authentication against it.

use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use subtle::{Choice, ConstantTimeEq as _};

use crate::{Credentials, Denied, Key, KeyHash, Pattern, Scopes};

/// One key of a ring: its hashes and its permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The name of the key in logs and metrics: 1 to 64 visible ASCII characters, unique in its
    /// ring.
    pub name: Arc<str>,
    /// The id of the key, under which everything is kept that belongs to it. Unlike a name, it is never
    /// used again for another key. A key of a configuration file has its name.
    pub id: String,
    /// The hash of the key, unique in its ring.
    pub hash: KeyHash,
    /// The hashes of earlier keys that are still accepted, all unique in the ring.
    pub former: Vec<FormerHash>,
    /// The granted capabilities: at least one.
    pub scopes: Scopes,
    /// The models that the key may use: at least one pattern, or `None` for every model.
    pub models: Option<Vec<Pattern>>,
    /// The Unix time in seconds at which the key expires. `None` means never.
    pub expires: Option<i64>,
}

/// The hash of a key that was replaced by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerHash {
    /// The hash.
    pub hash: KeyHash,
    /// The Unix time in seconds from which the earlier key is refused.
    pub until: i64,
}

/// The keys of a gateway: at least one, all distinct.
///
/// # Timing
///
/// The duration of [`KeyRing::admit`] reveals nothing useful to an attacker who tries keys. Only
/// hashes are looked up and compared, and finding keys whose hashes approach a stored hash costs as
/// much as guessing that key. Moreover, known, unknown and expired keys take the same steps: one
/// binary search, one constant-time comparison, and one expiry check.
#[derive(Clone, Debug)]
pub struct KeyRing {
    /// Never empty.
    entries: Vec<Entry>,
    /// All hashes of all entries, sorted; never empty.
    hashes: Vec<Known>,
}

/// A hash that a ring knows.
#[derive(Clone, Copy, Debug)]
struct Known {
    hash: KeyHash,
    /// The position of its entry.
    entry: usize,
    /// The Unix time in seconds from which the hash is refused, if the entry is not before.
    until: Option<i64>,
}

/// All problems of the entries of a ring, in order. `Display` prints one per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingErrors(Vec<RingProblem>);

/// A problem of the entries of a ring. `Display` states the problem and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingProblem {
    /// There are no entries.
    NoKeys,
    /// The name of an entry is empty, too long, or not visible ASCII.
    Name(String),
    /// Two entries have this name.
    SameName(String),
    /// Two entries have the same hash: the names of the earlier and the later one.
    SameKey(String, String),
    /// The entry of this name grants no capability.
    NoScopes(String),
    /// The entry of this name has an empty list of models.
    NoModels(String),
}

impl Entry {
    /// Creates an entry that grants `scopes` on every model and does not expire. Its name is its id.
    #[must_use]
    pub fn new(name: impl Into<String>, hash: KeyHash, scopes: Scopes) -> Self {
        let name = name.into();
        Self {
            id: name.clone(),
            name: name.into(),
            hash,
            former: Vec::new(),
            scopes,
            models: None,
            expires: None,
        }
    }

    /// Returns true if the key may use `model`.
    #[must_use]
    pub fn may_use(&self, model: &str) -> bool {
        self.models
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(model)))
    }

    /// Returns true if the key has expired at the Unix time `now`, in seconds.
    #[must_use]
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|end| now >= end)
    }
}

impl KeyRing {
    /// Creates a ring. Expired entries are allowed.
    ///
    /// # Errors
    /// Returns all problems at once. Having no entries is one.
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Result<Self, RingErrors> {
        let entries: Vec<_> = entries.into_iter().collect();
        let found = problems(&entries);
        if !found.is_empty() {
            return Err(RingErrors(found));
        }
        let known = entries.iter().enumerate();
        let mut hashes: Vec<_> = known.flat_map(|(at, entry)| Known::of(entry, at)).collect();
        hashes.sort_by_key(|known| *known.hash.order());
        Ok(Self { entries, hashes })
    }

    /// Returns the entry of the first presented key that is known and not expired at the Unix time
    /// `now`, in seconds.
    ///
    /// # Errors
    /// Returns [`Denied::Invalid`] if no presented key is known and not expired.
    pub fn admit(&self, credentials: &Credentials, now: i64) -> Result<&Entry, Denied> {
        credentials
            .keys()
            .find_map(|key| self.find(key, now))
            .ok_or(Denied::Invalid)
    }

    /// Iterates over the entries in unspecified order.
    pub fn entries(&self) -> std::slice::Iter<'_, Entry> {
        self.entries.iter()
    }

    fn find(&self, key: &Key, now: i64) -> Option<&Entry> {
        let hash = KeyHash::of(key);
        let position = self
            .hashes
            .partition_point(|known| known.hash.order() < hash.order());
        // Past the end, compare with the last hash instead, so that every lookup does one
        // comparison.
        let nearest = self.hashes.get(position).or(self.hashes.last())?;
        let entry = self.entries.get(nearest.entry)?;
        let known = nearest.hash.ct_eq(&hash);
        let is_over = nearest.until.is_some_and(|end| now >= end) | entry.is_expired(now);
        let fresh = Choice::from(u8::from(!is_over));
        bool::from(known & fresh).then_some(entry)
    }
}

impl Known {
    /// Returns the hashes of an entry, which is at this position.
    fn of(entry: &Entry, at: usize) -> impl Iterator<Item = Self> {
        let current = (entry.hash, None);
        let former = entry.former.iter();
        let former = former.map(|former| (former.hash, Some(former.until)));
        let all = std::iter::once(current).chain(former);
        all.map(move |(hash, until)| Self {
            hash,
            entry: at,
            until,
        })
    }
}

impl RingErrors {
    /// Iterates over the problems.
    pub fn iter(&self) -> std::slice::Iter<'_, RingProblem> {
        self.0.iter()
    }
}

impl fmt::Display for RingErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.iter().map(RingProblem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for RingErrors {}

impl fmt::Display for RingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKeys => f.write_str("there are no keys: expected at least one"),
            Self::Name(name) => {
                write!(
                    f,
                    "the key name {name:?} is invalid: expected 1 to {MAX_NAME} visible ASCII characters"
                )
            }
            Self::SameName(name) => write!(f, "two keys are named {name:?}: expected unique names"),
            Self::SameKey(first, second) => {
                write!(
                    f,
                    "the keys {first:?} and {second:?} have the same hash: expected distinct keys"
                )
            }
            Self::NoScopes(name) => {
                write!(
                    f,
                    "the key {name:?} has no scopes: expected some of 'text', 'messages', 'images'"
                )
            }
            Self::NoModels(name) => {
                write!(
                    f,
                    "the key {name:?} has an empty list of models: expected a pattern, or no list for all models"
                )
            }
        }
    }
}

/// Returns the problems of `entries`, in their order.
fn problems(entries: &[Entry]) -> Vec<RingProblem> {
    let mut found = Vec::new();
    if entries.is_empty() {
        found.push(RingProblem::NoKeys);
    }
    let mut names = HashSet::new();
    let mut hashes = HashMap::new();
    for entry in entries {
        let name = || entry.name.to_string();
        if !is_name(&entry.name) {
            found.push(RingProblem::Name(name()));
        }
        if !names.insert(&entry.name) {
            found.push(RingProblem::SameName(name()));
        }
        for Known { hash, .. } in Known::of(entry, 0) {
            match hashes.entry(*hash.order()) {
                Vacant(vacant) => _ = vacant.insert(&entry.name),
                Occupied(first) => {
                    found.push(RingProblem::SameKey(first.get().to_string(), name()));
                }
            }
        }
        if entry.scopes.is_empty() {
            found.push(RingProblem::NoScopes(name()));
        }
        if entry.models.as_ref().is_some_and(Vec::is_empty) {
            found.push(RingProblem::NoModels(name()));
        }
    }
    found
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Maximum length of a key name in characters, since it appears in every log line.
const MAX_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;

    fn key(seed: u8) -> Key {
        Key::from_bits([seed; 32])
    }

    fn entry(name: &str, seed: u8) -> Entry {
        Entry::new(name, KeyHash::of(&key(seed)), Scope::Text.into())
    }

    fn credentials(authorization: &Key, api_key: Option<&Key>) -> Credentials {
        let header = format!("Bearer {}", authorization.expose());
        Credentials::from_headers(
            [header.as_bytes()],
            api_key.map(|key| key.expose().as_bytes()),
        )
        .unwrap()
    }

    #[test]
    fn each_key_opens_its_own_entry_and_no_other_key_opens_any() {
        let ring = KeyRing::new((0..50).map(|seed| entry(&format!("k{seed}"), seed))).unwrap();
        for seed in 0..50 {
            assert_eq!(
                *ring.admit(&credentials(&key(seed), None), 0).unwrap().name,
                *format!("k{seed}")
            );
        }
        for seed in 50..=255 {
            assert_eq!(
                ring.admit(&credentials(&key(seed), None), 0),
                Err(Denied::Invalid)
            );
        }
        assert_eq!(ring.entries().len(), 50);
    }

    /// An expired key is rejected like an unknown one, from the exact second of its expiry.
    #[test]
    fn a02_d11_key_is_invalid_from_the_second_of_its_expiry() {
        let ring = KeyRing::new([Entry {
            expires: Some(100),
            ..entry("a", 1)
        }])
        .unwrap();
        assert!(ring.admit(&credentials(&key(1), None), 99).is_ok());
        assert_eq!(
            ring.admit(&credentials(&key(1), None), 100),
            Err(Denied::Invalid)
        );
        assert_eq!(
            ring.admit(&credentials(&key(2), None), 99),
            Err(Denied::Invalid)
        );
    }

    /// A key that was rotated opens its entry as the new one does, up to the second at which it ends.
    #[test]
    fn a_former_key_is_accepted_until_its_end() {
        let rotated = Entry {
            former: vec![FormerHash {
                hash: KeyHash::of(&key(2)),
                until: 100,
            }],
            expires: Some(200),
            ..entry("a", 1)
        };
        let ring = KeyRing::new([rotated, entry("b", 3)]).unwrap();
        let name = |seed, now| {
            let entry = ring.admit(&credentials(&key(seed), None), now)?;
            Ok(&*entry.name)
        };
        assert_eq!((name(1, 99), name(2, 99)), (Ok("a"), Ok("a")));
        assert_eq!(
            (name(1, 100), name(2, 100)),
            (Ok("a"), Err(Denied::Invalid))
        );
        assert_eq!(name(1, 200), Err(Denied::Invalid), "the entry has expired");
        assert_eq!(name(2, 200), Err(Denied::Invalid), "both have");
        assert_eq!(name(3, 200), Ok("b"));
        assert_eq!(ring.entries().len(), 2);
    }

    #[test]
    fn a_former_key_of_another_entry_is_a_problem() {
        let former = FormerHash {
            hash: KeyHash::of(&key(2)),
            until: 100,
        };
        let rotated = Entry {
            former: vec![former],
            ..entry("a", 1)
        };
        let errors = KeyRing::new([rotated, entry("b", 2)]).unwrap_err();
        assert_eq!(
            errors.to_string(),
            r#"the keys "a" and "b" have the same hash: expected distinct keys"#
        );
    }

    #[test]
    fn the_second_key_counts_when_the_first_is_unknown_or_expired() {
        let ring = KeyRing::new([
            entry("a", 1),
            Entry {
                expires: Some(5),
                ..entry("b", 2)
            },
        ])
        .unwrap();
        let name = |first, second| {
            let presented = credentials(&key(first), Some(&key(second)));
            Ok(&*ring.admit(&presented, 9)?.name)
        };
        assert_eq!(name(9, 1), Ok("a"));
        assert_eq!(name(2, 1), Ok("a"));
        assert_eq!(name(1, 9), Ok("a"));
        assert_eq!(name(9, 2), Err(Denied::Invalid));
    }

    #[test]
    fn a_key_with_a_list_opens_the_models_of_its_list_alone() {
        let listed = Entry {
            models: Some(vec!["alt-*".parse().unwrap(), "one".parse().unwrap()]),
            ..entry("a", 1)
        };
        assert!(listed.may_use("alt-flash") && listed.may_use("one") && !listed.may_use("two"));
        assert!(entry("b", 2).may_use("two"));
    }

    /// A key ring without keys cannot be created.
    #[test]
    fn a08_no_keys_is_an_error() {
        assert_eq!(
            KeyRing::new([]).unwrap_err().to_string(),
            "there are no keys: expected at least one"
        );
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let entries = [
            entry("a", 1),
            entry("a", 2),
            entry("b", 1),
            Entry {
                scopes: [].into_iter().collect(),
                ..entry("c d", 3)
            },
            Entry {
                models: Some(Vec::new()),
                ..entry("", 4)
            },
        ];
        let errors = KeyRing::new(entries).unwrap_err().to_string();
        assert_eq!(
            errors.lines().collect::<Vec<_>>(),
            [
                r#"two keys are named "a": expected unique names"#,
                r#"the keys "a" and "b" have the same hash: expected distinct keys"#,
                r#"the key name "c d" is invalid: expected 1 to 64 visible ASCII characters"#,
                r#"the key "c d" has no scopes: expected some of 'text', 'messages', 'images'"#,
                r#"the key name "" is invalid: expected 1 to 64 visible ASCII characters"#,
                r#"the key "" has an empty list of models: expected a pattern, or no list for all models"#,
            ]
        );
    }
}
