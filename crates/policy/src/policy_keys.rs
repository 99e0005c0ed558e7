//! The keys of a policy, from the configuration and from the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use accounting::{LiveKeys, StoredKey};
use auth::{Credentials, Denied, Entry, FormerHash, KeyRing, RingErrors};
use quota::Caps;

use crate::revocation::Revocation;

/// The keys that a policy admits.
pub struct PolicyKeys {
    /// The keys of the configuration and the environment.
    fixed: Arc<[Entry]>,
    /// The keys of the store.
    stored: Arc<StoredKeys>,
    /// The revocations of the keys of the store that are admitted, by their names.
    revocations: HashMap<String, Revocation>,
    /// The own limits of the keys of the store that are admitted, by their names.
    limits: HashMap<String, Caps>,
    /// All keys. `None` if the policy has no key; then no request is admitted.
    ring: Option<KeyRing>,
    /// The ids of all keys: after a change, each waiting request looks for the id of its own key.
    ids: HashSet<String>,
}

/// The keys of the store, and the revocations of each.
#[derive(Default)]
pub struct StoredKeys {
    live: LiveKeys,
    /// By the ids of the keys.
    revocations: HashMap<String, Revocation>,
}

impl StoredKeys {
    /// Keeps the keys that a store had last.
    pub fn new(live: LiveKeys) -> Self {
        Self::default().renewed(live)
    }

    /// Returns newer keys of the store. A key that was there before keeps its revocation.
    pub(crate) fn renewed(&self, live: LiveKeys) -> Self {
        let ids = live.keys.iter().map(|key| key.id.clone());
        let revocations = ids.map(|id| {
            let before = self.revocations.get(&id).cloned().unwrap_or_default();
            (id, before)
        });
        Self {
            revocations: revocations.collect(),
            live,
        }
    }

    /// Returns the ids of the keys that are not among newer ones: they are revoked.
    pub(crate) fn missing_in(&self, newer: &LiveKeys) -> Vec<String> {
        let retained: HashSet<&str> = newer.keys.iter().map(|key| key.id.as_str()).collect();
        let ids = self.live.keys.iter().map(|key| &key.id);
        ids.filter(|id| !retained.contains(id.as_str()))
            .cloned()
            .collect()
    }

    /// Ends the streams of the key with this id.
    pub fn end_streams(&self, id: &str) {
        if let Some(revocation) = self.revocations.get(id) {
            revocation.end_streams();
        }
    }
}

impl PolicyKeys {
    /// Combines the keys of the configuration and of the store. A stored key with the name or the
    /// hash of a configured key is ignored.
    ///
    /// # Errors
    /// Returns the problems of the keys of the configuration.
    pub fn new(fixed: Arc<[Entry]>, stored: Arc<StoredKeys>) -> Result<Self, RingErrors> {
        let names: HashSet<&str> = fixed.iter().map(|entry| &*entry.name).collect();
        let is_free = |entry: &Entry| {
            !names.contains(&*entry.name) && fixed.iter().all(|other| other.hash != entry.hash)
        };
        let keys = stored.live.keys.iter();
        let entries = keys.filter_map(|key| Some((key, entry(key)?)));
        let (free, taken): (Vec<_>, Vec<_>) = entries.partition(|(_, entry)| is_free(entry));
        for (_, entry) in taken {
            let key = entry.name;
            tracing::error!(
                %key,
                "a key of the store has the name or the hash of one of the configuration, and is ignored"
            );
        }
        let revocation = |key: &StoredKey| stored.revocations.get(&key.id).cloned();
        let revocations = free
            .iter()
            .filter_map(|(key, _)| Some((key.name.clone(), revocation(key)?)));
        let revocations = revocations.collect();
        // The limits of an ignored key would apply to the configured key of the same name.
        let limits = free
            .iter()
            .filter_map(|(key, _)| Some((key.name.clone(), key.limits.clone()?)));
        let limits = limits.collect();
        let free = free.into_iter().map(|(_, entry)| entry);
        let all: Vec<_> = fixed.iter().cloned().chain(free).collect();
        let ids = all.iter().map(|entry| entry.id.clone()).collect();
        let ring = match all.is_empty() {
            true => None,
            false => Some(KeyRing::new(all)?),
        };
        Ok(Self {
            fixed,
            stored,
            revocations,
            limits,
            ring,
            ids,
        })
    }

    /// Returns the same keys of the configuration with other keys of the store.
    pub(crate) fn with_stored(&self, stored: Arc<StoredKeys>) -> Result<Self, RingErrors> {
        Self::new(Arc::clone(&self.fixed), stored)
    }

    /// Returns the keys of the store.
    pub fn stored(&self) -> &Arc<StoredKeys> {
        &self.stored
    }

    /// Returns the revocation of the key with this name, if it is a key of the store.
    pub fn revocation(&self, name: &str) -> Option<Revocation> {
        self.revocations.get(name).cloned()
    }

    /// The epoch of the keys of the store.
    pub fn epoch(&self) -> u64 {
        self.stored.live.epoch
    }

    /// Returns the entry of the first presented key that is known and not expired.
    ///
    /// # Errors
    /// Returns [`Denied::Invalid`] if no presented key is known and not expired.
    pub fn admit(&self, credentials: &Credentials, now: i64) -> Result<&Entry, Denied> {
        let ring = self.ring.as_ref().ok_or(Denied::Invalid)?;
        ring.admit(credentials, now)
    }

    /// Returns the entries of all keys.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.ring.as_ref().map(KeyRing::entries).unwrap_or_default()
    }

    /// Returns true if this key, which was admitted before, is still one of these.
    pub fn has(&self, key: &Entry) -> bool {
        self.ids.contains(&key.id)
    }

    /// Returns the own limits of the keys of the store that are admitted, by their names.
    pub fn limits(&self) -> &HashMap<String, Caps> {
        &self.limits
    }

    /// Returns true if the configuration has a key of this name.
    pub fn is_fixed(&self, name: &str) -> bool {
        self.fixed.iter().any(|entry| *entry.name == *name)
    }
}

/// Converts a key of the store. `None` if it has no hash, which no store returns.
fn entry(key: &StoredKey) -> Option<Entry> {
    let (current, former) = key.hashes.split_first()?;
    let mut entry = Entry::new(key.name.clone(), current.hash, key.scopes);
    entry.id.clone_from(&key.id);
    entry.models = key.models.clone();
    entry.expires = key.expires;
    entry.former = former
        .iter()
        .map(|former| FormerHash {
            hash: former.hash,
            until: former.until.unwrap_or(i64::MAX),
        })
        .collect();
    Some(entry)
}

#[cfg(test)]
mod tests {
    use accounting::StoredHash;
    use auth::{Key, KeyHash, Scope};

    use super::*;

    fn stored(name: &str, key: u8) -> StoredKey {
        StoredKey {
            id: format!("id of {name}"),
            name: name.to_owned(),
            hashes: vec![StoredHash {
                hash: KeyHash::of(&Key::from_bits([key; 32])),
                until: None,
            }],
            scopes: Scope::Text.into(),
            models: None,
            expires: None,
            created: 0,
            changed: 0,
            revoked: None,
            ends_streams: false,
            limits: Some(Caps {
                requests_per_minute: Some(1),
                ..Caps::default()
            }),
        }
    }

    /// A key of the file hides one of the store with its limits and its revocation. Names are compared
    /// as they are written.
    #[test]
    fn limits_of_a_hidden_key_apply_to_no_other() {
        let fixed = Entry::new(
            "mobile",
            KeyHash::of(&Key::from_bits([0; 32])),
            Scope::Text.into(),
        );
        let live = LiveKeys {
            epoch: 1,
            keys: vec![stored("mobile", 1), stored("Mobile", 2)],
        };
        let stored = Arc::new(StoredKeys::new(live));
        let keys = PolicyKeys::new(Arc::new([fixed]), stored).unwrap();
        assert_eq!(keys.limits().keys().collect::<Vec<_>>(), ["Mobile"]);
        assert!(keys.revocation("mobile").is_none());
        assert!(keys.revocation("Mobile").is_some());
    }
}
