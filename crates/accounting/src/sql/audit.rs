//! The audit log and the epoch, which rises by each entry.

use serde_json::Value as Json;

use super::Value::{Given, Number, Text};
use super::{Failure, Row, Session};
use crate::audit::{AuditAction, AuditEntry, AuditQuery};
use crate::key::By;

/// Raises the epoch and adds an entry. The row of the epoch stays locked until the end of the
/// transaction, so that epochs become visible in their order.
pub(super) async fn write(
    session: &impl Session,
    action: AuditAction,
    key: &str,
    by: &By,
    details: &Json,
) -> Result<(), Failure> {
    let raise = "UPDATE meta SET value = value + 1 WHERE name = 'epoch' RETURNING value";
    let epoch = session.number(raise).await?;
    let sql = "INSERT INTO audit (at, actor, action, key, epoch, details)
         VALUES ($1, $2, $3, $4, $5, $6)";
    let values = [
        Number(Some(by.at)),
        Text(Some(&by.actor)),
        Text(Some(action.as_str())),
        Text(Some(key)),
        Number(Some(epoch)),
        Text(Some(&details.to_string())),
    ];
    session.execute(sql, &values).await.map(drop)
}

/// Returns one page of entries, the newest first.
pub(crate) async fn page(
    session: &impl Session,
    query: &AuditQuery,
) -> Result<Vec<AuditEntry>, Failure> {
    let sql = "SELECT id, at, actor, action, key, epoch, details FROM audit
         WHERE (key = $1 OR $1 IS NULL) AND (id < $2 OR $2 IS NULL)
         ORDER BY id DESC LIMIT $3";
    let values = [
        Given(query.key.as_deref()),
        Number(query.before),
        Number(Some(query.limit.into())),
    ];
    session.query(sql, &values, read).await
}

fn read(row: &dyn Row) -> Result<AuditEntry, Failure> {
    let id = row.number(0)?;
    let action = row.text(3)?;
    let action = AuditAction::ALL
        .into_iter()
        .find(|known| known.as_str() == action)
        .ok_or_else(|| {
            Failure::Refused(format!("the audit entry {id} has the action {action:?}"))
        })?;
    let details = serde_json::from_str(&row.text(6)?)
        .map_err(|error| Failure::Refused(format!("the details of audit entry {id}: {error}")))?;
    Ok(AuditEntry {
        id,
        at: row.number(1)?,
        actor: row.text(2)?,
        action,
        key: row.text(4)?,
        epoch: row.count(5)?,
        details,
    })
}
