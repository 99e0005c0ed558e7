//! The audit log and the epoch, which rises by each entry.

use rusqlite::{Connection, Row, named_params, params};

use super::failure::Failure;
use crate::audit::{AuditAction, AuditEntry, AuditQuery};
use crate::key::By;

/// Raises the epoch and adds an entry.
pub(super) fn write(
    connection: &Connection,
    action: AuditAction,
    key: &str,
    by: &By,
    details: &serde_json::Value,
) -> Result<(), Failure> {
    let epoch: i64 = connection
        .prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'epoch' RETURNING value")?
        .query_one([], |row| row.get(0))?;
    connection
        .prepare_cached(
            "INSERT INTO audit (at, actor, action, key, epoch, details)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            by.at,
            by.actor,
            action.as_str(),
            key,
            epoch,
            details.to_string()
        ])?;
    Ok(())
}

pub(super) fn page(
    connection: &Connection,
    query: &AuditQuery,
) -> Result<Vec<AuditEntry>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT id, at, actor, action, key, epoch, details FROM audit
         WHERE (:key IS NULL OR key = :key) AND (:before IS NULL OR id < :before)
         ORDER BY id DESC LIMIT :limit",
    )?;
    let mut rows = statement.query(named_params! {
        ":key": query.key,
        ":before": query.before,
        ":limit": query.limit,
    })?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(read(row)?);
    }
    Ok(entries)
}

fn read(row: &Row<'_>) -> Result<AuditEntry, Failure> {
    let id: i64 = row.get(0)?;
    let action: String = row.get(3)?;
    let epoch: i64 = row.get(5)?;
    let details: String = row.get(6)?;
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
        at: row.get(1)?,
        actor: row.get(2)?,
        action,
        key: row.get(4)?,
        epoch: u64::try_from(epoch).unwrap_or_default(),
        details,
    })
}
