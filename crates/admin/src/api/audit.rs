//! The log of changes of keys.

use accounting::{AuditEntry, AuditQuery};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::AdminRequest;
use super::failure::Failure;
use super::parameters::{Kind, Parameter};
use super::values::Time;

/// A page of the audit log, the newest entry first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditPage {
    /// The entries.
    entries: Vec<EntryView>,
    /// The value of `before` for the next page; null if this one is the last.
    next: Option<i64>,
}

/// A change of a key.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub(crate) struct EntryView {
    /// The position in the log.
    id: i64,
    /// The time of the change.
    at: Time,
    /// The administrator or program that made the change.
    actor: String,
    /// The kind of the change: `create`, `change`, `rotate` or `revoke`.
    action: &'static str,
    /// The id of the key.
    key: String,
    /// The number of the change among all changes of keys.
    epoch: u64,
    /// The properties of the key, as far as they were changed.
    details: Value,
}

/// Answers with a page of entries.
pub(super) async fn list(admin: &AdminRequest<'_>) -> Result<AuditPage, Failure> {
    let parameters = &admin.parameters;
    let limit: u32 = parameters.number("limit", 1..=1000)?.unwrap_or(100);
    let query = AuditQuery {
        key: parameters.text("key"),
        before: parameters.number("before", 1..=i64::MAX)?,
        // One more, which shows whether there is another page.
        limit: limit.saturating_add(1),
    };
    let mut found = admin.accounting()?.store.audit(query).await?;
    let length = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = found.len() > length;
    found.truncate(length);
    let next = found.last().filter(|_| has_more).map(|entry| entry.id);
    let entries = found.into_iter().map(EntryView::from).collect();
    Ok(AuditPage { entries, next })
}

impl From<AuditEntry> for EntryView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: Time::seconds(entry.at),
            actor: entry.actor,
            action: entry.action.as_str(),
            key: entry.key,
            epoch: entry.epoch,
            details: entry.details,
        }
    }
}

/// The query parameters of the audit log.
pub(super) const OF_AUDIT: [Parameter; 3] = [
    Parameter {
        name: "key",
        kind: Kind::Text,
        description: "Only entries of the key with this id.",
    },
    Parameter {
        name: "before",
        kind: Kind::Number,
        description: "Only entries before this position.",
    },
    Parameter {
        name: "limit",
        kind: Kind::Number,
        description: "The largest number of entries, 1 to 1000. Default: 100.",
    },
];
