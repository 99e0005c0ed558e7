//! Keys as text, as stores write them in columns and in the audit log.

use auth::{Entry, KeyRing, Pattern};
use quota::Caps;
use serde_json::{Value, json};

use super::{By, KeyChange, NewKey, StoredHash, StoredKey};
use crate::error::StoreError;

/// Returns the key that `new` describes, with a new id.
pub(crate) fn created(new: &NewKey, by: &By) -> Result<StoredKey, String> {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random bits for an id: {error}"))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(StoredKey {
        id: format!("key_{digits}"),
        name: new.name.clone(),
        hashes: vec![StoredHash {
            hash: new.hash,
            until: None,
        }],
        scopes: new.scopes,
        models: new.models.clone(),
        expires: new.expires,
        created: by.at,
        changed: by.at,
        revoked: None,
        ends_streams: false,
        limits: new.limits.clone(),
    })
}

/// Returns the key after a change.
pub(crate) fn changed(before: &StoredKey, change: &KeyChange, by: &By) -> StoredKey {
    let KeyChange {
        name,
        scopes,
        models,
        expires,
        limits,
    } = change.clone();
    let mut key = before.clone();
    key.name = name.unwrap_or(key.name);
    key.scopes = scopes.unwrap_or(key.scopes);
    key.models = models.unwrap_or(key.models);
    key.expires = expires.unwrap_or(key.expires);
    key.limits = limits.unwrap_or(key.limits);
    key.changed = by.at;
    key
}

/// Refuses a key that a key ring would refuse.
pub(crate) fn check(key: &StoredKey) -> Result<(), StoreError> {
    if let Some(current) = key.hashes.first() {
        let mut entry = Entry::new(key.name.as_str(), current.hash, key.scopes);
        entry.models = key.models.clone();
        KeyRing::new([entry]).map_err(|errors| StoreError::Invalid(errors.to_string()))?;
    }
    let problems = key.limits.as_ref().map(Caps::problems).unwrap_or_default();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(StoreError::Invalid(problems.join("; "))),
    }
}

/// Returns the models as a JSON array.
pub(crate) fn models_text(key: &StoredKey) -> Option<String> {
    models(key).map(|list| json!(list).to_string())
}

/// Returns the limits as a JSON object.
pub(crate) fn limits_text(key: &StoredKey) -> Option<String> {
    key.limits.as_ref().map(|limits| json!(limits).to_string())
}

/// Reads the text of [`models_text`].
pub(crate) fn parse_models(text: Option<String>) -> Result<Option<Vec<Pattern>>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    let list: Vec<String> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let patterns = list.iter().map(|pattern| pattern.parse());
    let patterns = patterns.collect::<Result<_, auth::PatternError>>();
    patterns.map(Some).map_err(|error| error.to_string())
}

/// Reads the text of [`limits_text`].
pub(crate) fn parse_limits(text: Option<String>) -> Result<Option<Caps>, String> {
    let limits = text.map(|text| serde_json::from_str(&text)).transpose();
    limits.map_err(|error| error.to_string())
}

/// Returns the properties of a key as the audit log shows them.
pub(crate) fn properties(key: &StoredKey) -> Value {
    json!({
        "name": key.name,
        "scopes": key.scopes.iter().map(auth::Scope::as_str).collect::<Vec<_>>(),
        "models": models(key),
        "expires": key.expires,
        "limits": key.limits,
    })
}

/// Returns the properties that differ, each with its old and its new value.
pub(crate) fn differences(before: &StoredKey, after: &StoredKey) -> Value {
    let before = properties(before);
    let Value::Object(after) = properties(after) else {
        return Value::Null;
    };
    after
        .into_iter()
        .filter(|(name, value)| before[name.as_str()] != *value)
        .map(|(name, value)| {
            let change = json!({"from": before[name.as_str()], "to": value});
            (name, change)
        })
        .collect()
}

fn models(key: &StoredKey) -> Option<Vec<&str>> {
    let patterns = key.models.as_ref()?;
    Some(patterns.iter().map(Pattern::as_str).collect())
}
