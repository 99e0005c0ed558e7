//! API keys as a store keeps them.

pub(crate) mod text;

use auth::{KeyHash, Pattern, Scopes};
use quota::Caps;

/// A key and everything that the store knows about it. All times are Unix times in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// The id, which never changes: `key_` and 24 hexadecimal digits.
    pub id: String,
    /// The name in logs, metrics and usage, unique among the keys that are not revoked.
    pub name: String,
    /// Key hashes, the current one first; the others were replaced by rotations.
    pub hashes: Vec<StoredHash>,
    /// The granted capabilities.
    pub scopes: Scopes,
    /// The models that the key may use, or `None` for every model.
    pub models: Option<Vec<Pattern>>,
    /// The time at which the key expires. `None` means never.
    pub expires: Option<i64>,
    /// The time of creation.
    pub created: i64,
    /// The time of the last write to this key.
    pub changed: i64,
    /// The time of revocation, or `None` if the key is in use.
    pub revoked: Option<i64>,
    /// True if the key was revoked and its running streams are to be ended.
    pub ends_streams: bool,
    /// The limits of this key alone.
    pub limits: Option<Caps>,
}

/// A hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredHash {
    /// The hash.
    pub hash: KeyHash,
    /// The Unix time in seconds from which the hash is no longer accepted. `None` means never.
    pub until: Option<i64>,
}

/// The properties of a key to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// The name, as [`auth::Entry`] defines it.
    pub name: String,
    /// The hash of the key. The key itself never reaches the store.
    pub hash: KeyHash,
    /// The granted capabilities.
    pub scopes: Scopes,
    /// The models that the key may use, or `None` for every model.
    pub models: Option<Vec<Pattern>>,
    /// The Unix time in seconds at which the key expires. `None` means never.
    pub expires: Option<i64>,
    /// The limits of this key alone.
    pub limits: Option<Caps>,
}

/// The properties of a key to be changed. `None` leaves a property as it is; `Some(None)` clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyChange {
    /// The new name.
    pub name: Option<String>,
    /// The new capabilities.
    pub scopes: Option<Scopes>,
    /// The new models; cleared, the key may use every model.
    pub models: Option<Option<Vec<Pattern>>>,
    /// The new time of expiry in Unix seconds; cleared, the key never expires.
    pub expires: Option<Option<i64>>,
    /// The new limits; cleared, the key has none of its own.
    pub limits: Option<Option<Caps>>,
}

/// The author and the time of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct By {
    /// The name of the administrator or program, as it appears in the audit log.
    pub actor: String,
    /// The Unix time in seconds.
    pub at: i64,
}

/// The keys that are not revoked, and the epoch to which they belong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveKeys {
    /// The epoch.
    pub epoch: u64,
    /// The keys in the order of their creation. They may have expired.
    pub keys: Vec<StoredKey>,
}
