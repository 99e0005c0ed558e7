//! Reads and writes of keys. Every write raises the epoch and adds an audit entry.

use std::fmt::Display;

use auth::{KeyHash, Scopes};
use serde_json::{Value, json};
use tokio_postgres::{Row, Transaction};

use super::failure::Failure;
use super::plain::plain;
use crate::audit::{AuditAction, AuditEntry, AuditQuery};
use crate::error::StoreError;
use crate::key::{By, KeyChange, LiveKeys, NewKey, StoredHash, StoredKey, text};

/// The columns that [`read`] expects.
const COLUMNS: &str = "id, name, scopes, models, expires, created, changed, revoked, ends_streams, limits, \
     ARRAY(SELECT hash FROM key_hashes WHERE key = keys.id \
       ORDER BY until IS NOT NULL, until DESC, hash), \
     ARRAY(SELECT until FROM key_hashes WHERE key = keys.id \
       ORDER BY until IS NOT NULL, until DESC, hash)";

pub(super) async fn epoch(tx: &Transaction<'_>) -> Result<u64, Failure> {
    let row = tx
        .query_one("SELECT value FROM meta WHERE name = 'epoch'", &[])
        .await?;
    Ok(unsigned(row.get(0)))
}

pub(super) async fn live_keys(tx: &Transaction<'_>) -> Result<LiveKeys, Failure> {
    tx.batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        .await?;
    Ok(LiveKeys {
        epoch: epoch(tx).await?,
        keys: list(tx, false).await?,
    })
}

pub(super) async fn list(tx: &Transaction<'_>, revoked: bool) -> Result<Vec<StoredKey>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE revoked IS NULL OR $1 ORDER BY position");
    tx.query(&sql, &[&revoked])
        .await?
        .iter()
        .map(read)
        .collect()
}

pub(super) async fn find(tx: &Transaction<'_>, id: &str) -> Result<Option<StoredKey>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE id = $1");
    tx.query_opt(&sql, &[&plain(id)])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

pub(super) async fn create(
    tx: &Transaction<'_>,
    new: &NewKey,
    by: &By,
) -> Result<StoredKey, Failure> {
    let key = text::created(new, by).map_err(Failure::Unavailable)?;
    text::check(&key)?;
    tx.execute(
        "INSERT INTO keys (id, name, scopes, models, expires, created, changed, limits)
         VALUES ($1, $2, $3, $4, $5, $6, $6, $7)",
        &[
            &key.id,
            &key.name,
            &key.scopes.to_string(),
            &text::models_text(&key),
            &key.expires,
            &by.at,
            &text::limits_text(&key),
        ],
    )
    .await
    .map_err(|error| Failure::taken(error, || StoreError::NameTaken(key.name.clone())))?;
    insert_hash(tx, &key.id, new.hash).await?;
    log(
        tx,
        AuditAction::Create,
        &key.id,
        by,
        &text::properties(&key),
    )
    .await?;
    Ok(key)
}

pub(super) async fn change(
    tx: &Transaction<'_>,
    id: &str,
    change: &KeyChange,
    by: &By,
) -> Result<StoredKey, Failure> {
    let before = locked(tx, id).await?;
    let key = text::changed(&before, change, by);
    text::check(&key)?;
    tx.execute(
        "UPDATE keys SET name = $2, scopes = $3, models = $4, expires = $5, limits = $6,
         changed = $7 WHERE id = $1",
        &[
            &id,
            &key.name,
            &key.scopes.to_string(),
            &text::models_text(&key),
            &key.expires,
            &text::limits_text(&key),
            &by.at,
        ],
    )
    .await
    .map_err(|error| Failure::taken(error, || StoreError::NameTaken(key.name.clone())))?;
    log(
        tx,
        AuditAction::Change,
        id,
        by,
        &text::differences(&before, &key),
    )
    .await?;
    Ok(key)
}

pub(super) async fn rotate(
    tx: &Transaction<'_>,
    id: &str,
    hash: KeyHash,
    old_until: i64,
    by: &By,
) -> Result<StoredKey, Failure> {
    locked(tx, id).await?;
    tx.execute(
        "UPDATE key_hashes SET until = least(until, $2) WHERE key = $1",
        &[&id, &old_until],
    )
    .await?;
    tx.execute(
        "DELETE FROM key_hashes WHERE key = $1 AND until <= $2",
        &[&id, &by.at],
    )
    .await?;
    insert_hash(tx, id, hash).await?;
    tx.execute("UPDATE keys SET changed = $2 WHERE id = $1", &[&id, &by.at])
        .await?;
    log(
        tx,
        AuditAction::Rotate,
        id,
        by,
        &json!({"old_until": old_until}),
    )
    .await?;
    locked(tx, id).await
}

pub(super) async fn revoke(
    tx: &Transaction<'_>,
    id: &str,
    ends_streams: bool,
    by: &By,
) -> Result<StoredKey, Failure> {
    let mut key = locked(tx, id).await?;
    tx.execute(
        "UPDATE keys SET revoked = $2, changed = $2, ends_streams = $3 WHERE id = $1",
        &[&id, &by.at, &ends_streams],
    )
    .await?;
    let details = json!({"name": key.name, "ends_streams": ends_streams});
    log(tx, AuditAction::Revoke, id, by, &details).await?;
    key.revoked = Some(by.at);
    key.changed = by.at;
    key.ends_streams = ends_streams;
    Ok(key)
}

pub(super) async fn audit(
    tx: &Transaction<'_>,
    query: &AuditQuery,
) -> Result<Vec<AuditEntry>, Failure> {
    let rows = tx
        .query(
            "SELECT id, at, actor, action, key, epoch, details FROM audit
             WHERE ($1::text IS NULL OR key = $1) AND ($2::bigint IS NULL OR id < $2)
             ORDER BY id DESC LIMIT $3",
            &[
                &query.key.as_ref().map(plain),
                &query.before,
                &i64::from(query.limit),
            ],
        )
        .await?;
    rows.iter().map(read_audit).collect()
}

/// Returns a key that is in use, and keeps other transactions from changing it.
async fn locked(tx: &Transaction<'_>, id: &str) -> Result<StoredKey, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE id = $1 AND revoked IS NULL FOR UPDATE");
    match tx.query_opt(&sql, &[&plain(id)]).await? {
        Some(row) => read(&row),
        None => Err(StoreError::UnknownKey(id.to_owned()).into()),
    }
}

async fn insert_hash(tx: &Transaction<'_>, id: &str, hash: KeyHash) -> Result<(), Failure> {
    tx.execute(
        "INSERT INTO key_hashes (hash, key) VALUES ($1, $2)",
        &[&hash.to_string(), &id],
    )
    .await
    .map_err(|error| Failure::taken(error, || StoreError::HashTaken))?;
    Ok(())
}

/// Raises the epoch and adds an audit entry. The row of the epoch stays locked until the end of the
/// transaction, so that epochs become visible in their order.
async fn log(
    tx: &Transaction<'_>,
    action: AuditAction,
    key: &str,
    by: &By,
    details: &Value,
) -> Result<(), Failure> {
    let epoch: i64 = tx
        .query_one(
            "UPDATE meta SET value = value + 1 WHERE name = 'epoch' RETURNING value",
            &[],
        )
        .await?
        .get(0);
    tx.execute(
        "INSERT INTO audit (at, actor, action, key, epoch, details)
         VALUES ($1, $2, $3, $4, $5, $6)",
        &[
            &by.at,
            &by.actor,
            &action.as_str(),
            &key,
            &epoch,
            &details.to_string(),
        ],
    )
    .await?;
    Ok(())
}

fn read(row: &Row) -> Result<StoredKey, Failure> {
    let id: String = row.get(0);
    let scopes: String = row.get(2);
    let hashes: Vec<String> = row.get(10);
    let ends: Vec<Option<i64>> = row.get(11);
    let hashes = hashes.iter().zip(ends).map(|(text, until)| {
        let hash = text
            .parse()
            .map_err(|error: auth::KeyHashError| unreadable(&id, "hash", error))?;
        Ok(StoredHash { hash, until })
    });
    Ok(StoredKey {
        name: row.get(1),
        hashes: hashes.collect::<Result<_, Failure>>()?,
        scopes: scopes
            .parse::<Scopes>()
            .map_err(|error| unreadable(&id, "scopes", error))?,
        models: text::parse_models(row.get(3)).map_err(|error| unreadable(&id, "models", error))?,
        expires: row.get(4),
        created: row.get(5),
        changed: row.get(6),
        revoked: row.get(7),
        ends_streams: row.get(8),
        limits: text::parse_limits(row.get(9)).map_err(|error| unreadable(&id, "limits", error))?,
        id,
    })
}

fn read_audit(row: &Row) -> Result<AuditEntry, Failure> {
    let id: i64 = row.get(0);
    let action: String = row.get(3);
    let details: String = row.get(6);
    let action = AuditAction::ALL
        .into_iter()
        .find(|known| known.as_str() == action)
        .ok_or_else(|| {
            Failure::Refused(format!("the audit entry {id} has the action {action:?}"))
        })?;
    let details = serde_json::from_str(&details)
        .map_err(|error| Failure::Refused(format!("the details of audit entry {id}: {error}")))?;
    Ok(AuditEntry {
        id,
        at: row.get(1),
        actor: row.get(2),
        action,
        key: row.get(4),
        epoch: unsigned(row.get(5)),
        details,
    })
}

fn unreadable(id: &str, column: &str, error: impl Display) -> Failure {
    Failure::Refused(format!("the column '{column}' of the key {id:?}: {error}"))
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}
