//! Reads and writes of keys. Every write raises the epoch and adds an audit entry.

use std::fmt::Display;

use auth::{KeyHash, Scopes};
use serde_json::json;

use super::Value::{Given, Number, Text, Truth};
use super::{Failure, Row, Session, Value, audit};
use crate::audit::AuditAction;
use crate::error::StoreError;
use crate::key::{By, KeyChange, LiveKeys, NewKey, StoredHash, StoredKey, text};

/// Returns the epoch.
pub(crate) async fn epoch(session: &impl Session) -> Result<u64, Failure> {
    let epoch = session.number("SELECT value FROM meta WHERE name = 'epoch'");
    Ok(u64::try_from(epoch.await?).unwrap_or_default())
}

/// Returns the keys that are not revoked, and their epoch.
pub(crate) async fn live_keys<S: Session>(session: &S) -> Result<LiveKeys, Failure> {
    if let Some(sql) = S::SEE_ONE_MOMENT {
        session.execute(sql, &[]).await?;
    }
    Ok(LiveKeys {
        epoch: epoch(session).await?,
        keys: list(session, false).await?,
    })
}

/// Returns the keys in the order of their creation, with revoked ones if `revoked` is true.
pub(crate) async fn list(session: &impl Session, revoked: bool) -> Result<Vec<StoredKey>, Failure> {
    select(session, "revoked IS NULL OR $1", Truth(revoked), "").await
}

/// Returns the key with this id.
pub(crate) async fn find(session: &impl Session, id: &str) -> Result<Option<StoredKey>, Failure> {
    let mut keys = select(session, "id = $1", Given(Some(id)), "").await?;
    Ok(keys.pop())
}

/// Creates a key.
pub(crate) async fn create(
    session: &impl Session,
    new: &NewKey,
    by: &By,
) -> Result<StoredKey, Failure> {
    let key = text::created(new, by).map_err(Failure::Unavailable)?;
    let sql = "INSERT INTO keys (id, name, scopes, models, expires, limits, changed, created)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7)";
    write(session, sql, &key).await?;
    insert_hash(session, &key.id, new.hash).await?;
    let details = text::properties(&key);
    audit::write(session, AuditAction::Create, &key.id, by, &details).await?;
    Ok(key)
}

/// Changes properties of a key.
pub(crate) async fn change(
    session: &impl Session,
    id: &str,
    change: &KeyChange,
    by: &By,
) -> Result<StoredKey, Failure> {
    let before = live(session, id).await?;
    let key = text::changed(&before, change, by);
    let sql = "UPDATE keys SET name = $2, scopes = $3, models = $4, expires = $5, limits = $6,
         changed = $7 WHERE id = $1";
    write(session, sql, &key).await?;
    let details = text::differences(&before, &key);
    audit::write(session, AuditAction::Change, id, by, &details).await?;
    Ok(key)
}

/// Gives a key a new hash, and an end to its others.
pub(crate) async fn rotate(
    session: &impl Session,
    id: &str,
    hash: KeyHash,
    old_until: i64,
    by: &By,
) -> Result<StoredKey, Failure> {
    live(session, id).await?;
    let at = |time| [Text(Some(id)), Number(Some(time))];
    let sql = "UPDATE key_hashes SET until = CASE WHEN until < $2 THEN until ELSE $2 END
         WHERE key = $1";
    session.execute(sql, &at(old_until)).await?;
    let sql = "DELETE FROM key_hashes WHERE key = $1 AND until <= $2";
    session.execute(sql, &at(by.at)).await?;
    let sql = "UPDATE keys SET changed = $2 WHERE id = $1";
    session.execute(sql, &at(by.at)).await?;
    insert_hash(session, id, hash).await?;
    let details = json!({"old_until": old_until});
    audit::write(session, AuditAction::Rotate, id, by, &details).await?;
    live(session, id).await
}

/// Revokes a key.
pub(crate) async fn revoke(
    session: &impl Session,
    id: &str,
    ends_streams: bool,
    by: &By,
) -> Result<StoredKey, Failure> {
    let mut key = live(session, id).await?;
    let sql = "UPDATE keys SET revoked = $2, changed = $2, ends_streams = $3 WHERE id = $1";
    let values = [Text(Some(id)), Number(Some(by.at)), Truth(ends_streams)];
    session.execute(sql, &values).await?;
    let details = json!({"name": key.name, "ends_streams": ends_streams});
    audit::write(session, AuditAction::Revoke, id, by, &details).await?;
    key.revoked = Some(by.at);
    key.changed = by.at;
    key.ends_streams = ends_streams;
    Ok(key)
}

/// Returns a key that is in use, and keeps other transactions from changing it.
async fn live<S: Session>(session: &S, id: &str) -> Result<StoredKey, Failure> {
    let condition = "id = $1 AND revoked IS NULL";
    let mut keys = select(session, condition, Given(Some(id)), S::HOLDING).await?;
    let unknown = || StoreError::UnknownKey(id.to_owned());
    Ok(keys.pop().ok_or_else(unknown)?)
}

/// Writes a key that is valid, and whose name no other has.
async fn write(session: &impl Session, sql: &str, key: &StoredKey) -> Result<(), Failure> {
    text::check(key)?;
    let (models, limits) = (text::models_text(key), text::limits_text(key));
    let values = [
        Text(Some(&key.id)),
        Text(Some(&key.name)),
        Text(Some(&key.scopes.to_string())),
        Text(models.as_deref()),
        Number(key.expires),
        Text(limits.as_deref()),
        Number(Some(key.changed)),
    ];
    let written = session.execute(sql, &values).await;
    let taken = || StoreError::NameTaken(key.name.clone());
    written.map(drop).map_err(|failure| failure.taken(taken))
}

async fn insert_hash(session: &impl Session, id: &str, hash: KeyHash) -> Result<(), Failure> {
    let sql = "INSERT INTO key_hashes (hash, key) VALUES ($1, $2)";
    let values = [Text(Some(&hash.to_string())), Text(Some(id))];
    let inserted = session.execute(sql, &values).await;
    let taken = || StoreError::HashTaken;
    inserted.map(drop).map_err(|failure| failure.taken(taken))
}

/// Returns the keys that fulfil a condition, each with its hashes.
async fn select(
    session: &impl Session,
    condition: &str,
    value: Value<'_>,
    holding: &str,
) -> Result<Vec<StoredKey>, Failure> {
    let sql = format!(
        "SELECT id, name, scopes, models, expires, created, changed, revoked, ends_streams, limits,
           hash, until
         FROM keys AS held LEFT JOIN key_hashes ON key = id WHERE {condition}
         ORDER BY position, until IS NOT NULL, until DESC, hash{holding}"
    );
    let mut keys: Vec<StoredKey> = Vec::new();
    for row in session.query(&sql, &[value], read).await? {
        match keys.last_mut() {
            Some(key) if key.id == row.id => key.hashes.extend(row.hashes),
            _ => keys.push(row),
        }
    }
    Ok(keys)
}

/// Reads a key with one of its hashes.
fn read(row: &dyn Row) -> Result<StoredKey, Failure> {
    let id = row.text(0)?;
    let hash = match row.text_or_null(10)? {
        Some(text) => Some(StoredHash {
            hash: text
                .parse()
                .map_err(|error: auth::KeyHashError| unreadable(&id, "hash", error))?,
            until: row.number_or_null(11)?,
        }),
        None => None,
    };
    Ok(StoredKey {
        name: row.text(1)?,
        hashes: hash.into_iter().collect(),
        scopes: row
            .text(2)?
            .parse::<Scopes>()
            .map_err(|error| unreadable(&id, "scopes", error))?,
        models: text::parse_models(row.text_or_null(3)?)
            .map_err(|error| unreadable(&id, "models", error))?,
        expires: row.number_or_null(4)?,
        created: row.number(5)?,
        changed: row.number(6)?,
        revoked: row.number_or_null(7)?,
        ends_streams: row.truth(8)?,
        limits: text::parse_limits(row.text_or_null(9)?)
            .map_err(|error| unreadable(&id, "limits", error))?,
        id,
    })
}

fn unreadable(id: &str, column: &str, error: impl Display) -> Failure {
    Failure::Refused(format!("the column '{column}' of the key {id:?}: {error}"))
}
