//! Entries of the journal, each stored exactly once by its request id.

use std::collections::HashSet;

use super::Value::{Given, Number, Text};
use super::columns::{OF_ADMISSION, OF_END, updates};
use super::rollup::{self, Minutes, read_minute};
use super::{Failure, Session, Value};
use crate::usage::{Batch, Closed, Entry, Opened, Shipped, State, count, nanos};

/// Stores entries, and the position in the journal up to which they have been shipped.
pub(crate) async fn append(session: &impl Session, batch: &Batch) -> Result<(), Failure> {
    // Of several equal entries the first counts, and the order of an admission and an end does not
    // matter, so each kind is stored by one statement.
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    let (mut opened_ids, mut closed_ids) = (HashSet::new(), HashSet::new());
    let mut due = Minutes::default();
    for entry in &batch.entries {
        match entry {
            Entry::Opened(entry) if opened_ids.insert(&entry.request_id) => {
                opened.push(admission(entry));
                due.add(entry.at_ms, entry.key.clone(), entry.model.clone());
            }
            Entry::Closed(entry) if closed_ids.insert(&entry.request_id) => {
                closed.push(end(entry));
            }
            _ => {}
        }
    }
    open(session, &opened, &mut due).await?;
    close(session, &closed, &mut due).await?;
    rollup::set_due(session, &due).await?;
    match &batch.shipped {
        Some(shipped) => set_shipped(session, shipped).await,
        None => Ok(()),
    }
}

/// Returns the position up to which the journal of a run has been shipped.
pub(crate) async fn shipped(session: &impl Session, run: &str) -> Result<u64, Failure> {
    let sql = "SELECT \"offset\" FROM shipped WHERE run = $1";
    let mut offsets = session
        .query(sql, &[Text(Some(run))], |row| row.count(0))
        .await?;
    Ok(offsets.pop().unwrap_or_default())
}

/// Marks the open requests of a run as abandoned and forgets its shipped position.
pub(crate) async fn abandon(session: &impl Session, run: &str) -> Result<u64, Failure> {
    let sql = "UPDATE usage SET state = 'abandoned' WHERE run = $1 AND state = 'open'
         RETURNING at_ms, key, model";
    let run = [Text(Some(run))];
    let abandoned = session.query(sql, &run, read_minute).await?;
    let requests = u64::try_from(abandoned.len()).unwrap_or(u64::MAX);
    let mut due = Minutes::default();
    due.extend(abandoned);
    rollup::set_due(session, &due).await?;
    let sql = "DELETE FROM shipped WHERE run = $1";
    session.execute(sql, &run).await?;
    Ok(requests)
}

async fn set_shipped(session: &impl Session, shipped: &Shipped) -> Result<(), Failure> {
    let offset = i64::try_from(shipped.offset).unwrap_or(i64::MAX);
    let sql = "INSERT INTO shipped AS old (run, \"offset\") VALUES ($1, $2)
         ON CONFLICT (run) DO UPDATE SET \"offset\" = excluded.\"offset\"
         WHERE old.\"offset\" < excluded.\"offset\"";
    let values = [Text(Some(&shipped.run)), Number(Some(offset))];
    session.execute(sql, &values).await.map(drop)
}

/// Stores what [`admission`] returns: as new rows, or in rows that the ends of their requests have
/// made.
async fn open<S: Session>(
    session: &S,
    entries: &[Vec<Value<'_>>],
    due: &mut Minutes,
) -> Result<(), Failure> {
    let ids: Vec<_> = entries.iter().map(|values| values[..1].to_vec()).collect();
    // These rows will count in another minute.
    let moved = |ids: &str| {
        format!(
            "SELECT at_ms, key, model FROM usage AS held
             WHERE request_id {} ({ids}) AND opened_ms IS NULL
             ORDER BY request_id{}",
            S::IS_IN,
            S::HOLDING
        )
    };
    due.extend(session.query_rows(&ids, moved, read_minute).await?);
    let store = |rows: &str| {
        format!(
            "INSERT INTO usage AS old (request_id, state, at_ms, opened_ms, {}) {rows}
             ON CONFLICT (request_id)
             DO UPDATE SET at_ms = excluded.at_ms, opened_ms = excluded.opened_ms, {}
             WHERE old.opened_ms IS NULL",
            OF_ADMISSION.join(", "),
            updates(&OF_ADMISSION)
        )
    };
    let stored = session.query_rows(entries, store, |_| Ok(())).await;
    stored.map(drop)
}

/// Returns the id, the state and twice the time of an admission, and [`OF_ADMISSION`].
fn admission(entry: &Opened) -> Vec<Value<'_>> {
    vec![
        Given(Some(&entry.request_id)),
        Text(Some(State::Open.as_str())),
        Number(Some(entry.at_ms)),
        Number(Some(entry.at_ms)),
        Given(Some(&entry.replica)),
        Given(Some(&entry.run)),
        Given(Some(&entry.key)),
        Given(Some(&entry.route)),
        Given(Some(&entry.model)),
        Number(Some(count(entry.reserved_tokens))),
        Number(Some(nanos(entry.reserved_nanos))),
    ]
}

/// Stores what [`end`] returns: closes open rows, and makes closed ones of requests whose admission
/// has not arrived yet. A row that is closed or abandoned stays as it is.
async fn close(
    session: &impl Session,
    entries: &[Vec<Value<'_>>],
    due: &mut Minutes,
) -> Result<(), Failure> {
    let store = |rows: &str| {
        format!(
            "INSERT INTO usage AS old (request_id, state, at_ms, closed_ms, {}) {rows}
             ON CONFLICT (request_id)
             DO UPDATE SET state = excluded.state, closed_ms = excluded.closed_ms, {}
             WHERE old.state = 'open'
             RETURNING at_ms, key, model",
            OF_END.join(", "),
            updates(&OF_END)
        )
    };
    due.extend(session.query_rows(entries, store, read_minute).await?);
    Ok(())
}

/// Returns the id, the state and twice the time of an end, and [`OF_END`].
fn end(entry: &Closed) -> Vec<Value<'_>> {
    let mut values = vec![
        Given(Some(&entry.request_id)),
        Text(Some(State::Closed.as_str())),
        Number(Some(entry.at_ms)),
        Number(Some(entry.at_ms)),
        Given(Some(&entry.outcome)),
        Number(Some(entry.status.into())),
        Given(entry.target.as_deref()),
    ];
    let tokens = entry.tokens.values().map(count);
    values.extend(tokens.map(|count| Number(Some(count))));
    values.extend([
        Number(Some(count(entry.pictures))),
        Number(entry.cost_nanos.map(nanos)),
        Given(entry.service_tier.as_deref()),
        Given(entry.missing_prices.as_deref()),
    ]);
    values
}
