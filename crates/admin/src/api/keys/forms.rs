//! Keys as JSON: the bodies of requests and responses.

use accounting::StoredKey;
use auth::{Key, Pattern, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::Limits;
use crate::api::body::present;
use crate::api::values::Time;

wire::read_objects!(NewKeyForm, KeyChangeForm, Rotation);

/// A key to be created.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(rename = "NewKey")]
pub(crate) struct NewKeyForm {
    /// The name in logs, metrics and usage: 1 to 64 visible ASCII characters, unique among all keys
    /// in use.
    pub(super) name: String,
    /// The capabilities: at least one of `text`, `messages` and `images`.
    pub(super) scopes: Vec<String>,
    /// The models that the key may use, with `*` for any characters. Absent: every model.
    #[serde(default)]
    pub(super) models: Option<Vec<String>>,
    /// The expiry: a date such as `2027-01-31`, a time, or a span from now such as `90d`. Absent:
    /// never.
    #[serde(default)]
    pub(super) expires: Option<String>,
    /// The limits of this key alone, in addition to the configuration's.
    #[serde(default)]
    pub(super) limits: Option<Limits>,
}

/// Changes of a key. Absent properties stay as they are; null clears one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(rename = "KeyChange")]
pub(crate) struct KeyChangeForm {
    /// The new name.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>")]
    pub(super) name: Option<Option<String>>,
    /// The new capabilities.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) scopes: Option<Option<Vec<String>>>,
    /// The new models; null for every model.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) models: Option<Option<Vec<String>>>,
    /// The new expiry, as of a new key; null for never.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<String>")]
    pub(super) expires: Option<Option<String>>,
    /// The new limits, which replace all former ones; null for none of its own.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<Limits>")]
    pub(super) limits: Option<Option<Limits>>,
}

/// The replacement of a key by a new one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub(crate) struct Rotation {
    /// The time for which the old key is still accepted: a span such as `24h`, which is the default.
    /// With `0s` it is refused at once.
    #[serde(default)]
    pub(super) overlap: Option<String>,
}

/// A key that was just generated. It is shown only here.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CreatedKey")]
pub(crate) struct Created {
    /// The key itself.
    key: String,
    /// Its properties.
    #[serde(flatten)]
    stored: KeyView,
}

/// Keys in the order of their creation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KeyList {
    /// The keys.
    pub(super) keys: Vec<KeyView>,
}

/// A key as it is stored.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Key")]
pub(crate) struct KeyView {
    /// The id, which never changes.
    id: String,
    /// The name in logs, metrics and usage.
    name: String,
    /// The hashes of the key that are accepted: the current one first, then the rotated ones.
    hashes: Vec<HashView>,
    /// The capabilities.
    scopes: Vec<&'static str>,
    /// The models that the key may use; null for every model.
    models: Option<Vec<String>>,
    /// The time from which the key is refused; null for never.
    expires: Option<Time>,
    /// The limits of this key alone.
    limits: Option<Limits>,
    /// The time of creation.
    created: Time,
    /// The time of the last change.
    changed: Time,
    /// The time of revocation; null for a key in use.
    revoked: Option<Time>,
    /// True if the key was revoked, and its running streams with it.
    ends_streams: bool,
}

/// A hash of a key.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Hash")]
pub(crate) struct HashView {
    /// The SHA-256 hash of the key.
    hash: String,
    /// The time from which the hash is refused; null for the current one.
    until: Option<Time>,
}

impl Created {
    pub(super) fn new(key: &Key, stored: &StoredKey) -> Self {
        Self {
            key: key.expose().to_owned(),
            stored: KeyView::of(stored),
        }
    }
}

impl KeyView {
    pub(super) fn of(key: &StoredKey) -> Self {
        let hashes = key.hashes.iter().map(|stored| HashView {
            hash: stored.hash.to_string(),
            until: stored.until.map(Time::seconds),
        });
        let models = |patterns: &Vec<Pattern>| patterns.iter().map(Pattern::to_string).collect();
        Self {
            id: key.id.clone(),
            name: key.name.clone(),
            hashes: hashes.collect(),
            scopes: key.scopes.iter().map(Scope::as_str).collect(),
            models: key.models.as_ref().map(models),
            expires: key.expires.map(Time::seconds),
            limits: key.limits.as_ref().map(Limits::of),
            created: Time::seconds(key.created),
            changed: Time::seconds(key.changed),
            revoked: key.revoked.map(Time::seconds),
            ends_streams: key.ends_streams,
        }
    }
}
