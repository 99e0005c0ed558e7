//! Reads and writes of keys. Every write raises the epoch and adds an audit entry.

use std::fmt::Display;

use auth::{KeyHash, Scopes};
use rusqlite::{Connection, ErrorCode, Row, params};
use serde_json::json;

use super::audit;
use super::failure::Failure;
use crate::audit::AuditAction;
use crate::error::StoreError;
use crate::key::{By, KeyChange, NewKey, StoredHash, StoredKey, text};

/// The columns that [`read`] expects.
const COLUMNS: &str =
    "id, name, scopes, models, expires, created, changed, revoked, ends_streams, limits";

pub(super) fn epoch(connection: &Connection) -> Result<u64, Failure> {
    let epoch: i64 = connection
        .prepare_cached("SELECT value FROM meta WHERE name = 'epoch'")?
        .query_one([], |row| row.get(0))?;
    Ok(u64::try_from(epoch).unwrap_or_default())
}

pub(super) fn list(connection: &Connection, revoked: bool) -> Result<Vec<StoredKey>, Failure> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM keys WHERE revoked IS NULL OR ?1 ORDER BY position"
    ))?;
    let mut rows = statement.query([revoked])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        keys.push(read(connection, row)?);
    }
    Ok(keys)
}

pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<StoredKey>, Failure> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM keys WHERE id = ?1"))?;
    let mut rows = statement.query([id])?;
    rows.next()?.map(|row| read(connection, row)).transpose()
}

pub(super) fn create(connection: &Connection, new: &NewKey, by: &By) -> Result<StoredKey, Failure> {
    let key = text::created(new, by).map_err(Failure::Unavailable)?;
    text::check(&key)?;
    connection
        .prepare_cached(
            "INSERT INTO keys (id, name, scopes, models, expires, created, changed, limits)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)",
        )?
        .execute(params![
            key.id,
            key.name,
            key.scopes.to_string(),
            text::models_text(&key),
            key.expires,
            by.at,
            text::limits_text(&key),
        ])
        .map_err(|error| taken(error, || StoreError::NameTaken(key.name.clone())))?;
    insert_hash(connection, &key.id, new.hash)?;
    audit::write(
        connection,
        AuditAction::Create,
        &key.id,
        by,
        &text::properties(&key),
    )?;
    Ok(key)
}

pub(super) fn change(
    connection: &Connection,
    id: &str,
    change: &KeyChange,
    by: &By,
) -> Result<StoredKey, Failure> {
    let before = live(connection, id)?;
    let key = text::changed(&before, change, by);
    text::check(&key)?;
    connection
        .prepare_cached(
            "UPDATE keys SET name = ?2, scopes = ?3, models = ?4, expires = ?5, limits = ?6,
             changed = ?7 WHERE id = ?1",
        )?
        .execute(params![
            id,
            key.name,
            key.scopes.to_string(),
            text::models_text(&key),
            key.expires,
            text::limits_text(&key),
            by.at,
        ])
        .map_err(|error| taken(error, || StoreError::NameTaken(key.name.clone())))?;
    let details = text::differences(&before, &key);
    audit::write(connection, AuditAction::Change, id, by, &details)?;
    Ok(key)
}

pub(super) fn rotate(
    connection: &Connection,
    id: &str,
    hash: KeyHash,
    old_until: i64,
    by: &By,
) -> Result<StoredKey, Failure> {
    live(connection, id)?;
    connection
        .prepare_cached("UPDATE key_hashes SET until = min(ifnull(until, ?2), ?2) WHERE key = ?1")?
        .execute(params![id, old_until])?;
    connection
        .prepare_cached("DELETE FROM key_hashes WHERE key = ?1 AND until <= ?2")?
        .execute(params![id, by.at])?;
    insert_hash(connection, id, hash)?;
    set_changed(connection, id, by)?;
    let details = json!({"old_until": old_until});
    audit::write(connection, AuditAction::Rotate, id, by, &details)?;
    live(connection, id)
}

pub(super) fn revoke(
    connection: &Connection,
    id: &str,
    ends_streams: bool,
    by: &By,
) -> Result<StoredKey, Failure> {
    let mut key = live(connection, id)?;
    connection
        .prepare_cached("UPDATE keys SET revoked = ?2, ends_streams = ?3 WHERE id = ?1")?
        .execute(params![id, by.at, ends_streams])?;
    set_changed(connection, id, by)?;
    let details = json!({"name": key.name, "ends_streams": ends_streams});
    audit::write(connection, AuditAction::Revoke, id, by, &details)?;
    key.revoked = Some(by.at);
    key.changed = by.at;
    key.ends_streams = ends_streams;
    Ok(key)
}

fn live(connection: &Connection, id: &str) -> Result<StoredKey, Failure> {
    find(connection, id)?
        .filter(|key| key.revoked.is_none())
        .ok_or_else(|| StoreError::UnknownKey(id.to_owned()).into())
}

fn set_changed(connection: &Connection, id: &str, by: &By) -> Result<(), Failure> {
    connection
        .prepare_cached("UPDATE keys SET changed = ?2 WHERE id = ?1")?
        .execute(params![id, by.at])?;
    Ok(())
}

fn insert_hash(connection: &Connection, id: &str, hash: KeyHash) -> Result<(), Failure> {
    connection
        .prepare_cached("INSERT INTO key_hashes (hash, key) VALUES (?1, ?2)")?
        .execute([hash.to_string().as_str(), id])
        .map_err(|error| taken(error, || StoreError::HashTaken))?;
    Ok(())
}

/// Returns the failure for a write that may have broken a unique index.
fn taken(error: rusqlite::Error, reason: impl FnOnce() -> StoreError) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => reason().into(),
        _ => error.into(),
    }
}

fn read(connection: &Connection, row: &Row<'_>) -> Result<StoredKey, Failure> {
    let id: String = row.get(0)?;
    let scopes: String = row.get(2)?;
    let models: Option<String> = row.get(3)?;
    let limits: Option<String> = row.get(9)?;
    Ok(StoredKey {
        name: row.get(1)?,
        hashes: hashes(connection, &id)?,
        scopes: scopes
            .parse::<Scopes>()
            .map_err(|error| unreadable(&id, "scopes", error))?,
        models: text::parse_models(models).map_err(|error| unreadable(&id, "models", error))?,
        expires: row.get(4)?,
        created: row.get(5)?,
        changed: row.get(6)?,
        revoked: row.get(7)?,
        ends_streams: row.get(8)?,
        limits: text::parse_limits(limits).map_err(|error| unreadable(&id, "limits", error))?,
        id,
    })
}

fn hashes(connection: &Connection, id: &str) -> Result<Vec<StoredHash>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT hash, until FROM key_hashes WHERE key = ?1
         ORDER BY until IS NOT NULL, until DESC, hash",
    )?;
    let mut rows = statement.query([id])?;
    let mut hashes = Vec::new();
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        hashes.push(StoredHash {
            hash: text
                .parse()
                .map_err(|error: auth::KeyHashError| unreadable(id, "hash", error))?,
            until: row.get(1)?,
        });
    }
    Ok(hashes)
}

fn unreadable(id: &str, column: &str, error: impl Display) -> Failure {
    Failure::Refused(format!("the column '{column}' of the key {id:?}: {error}"))
}
