//! Entries of the journal, each stored exactly once by its request id.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};

use super::failure::Failure;
use super::plain::plain;
use super::rollup::{self, Minutes};
use crate::columns::{OF_END, updates};
use crate::tokens::TokenCounts;
use crate::usage::{Batch, Closed, Entry, Opened, Shipped, count, nanos};

pub(super) async fn append(tx: &Transaction<'_>, batch: &Batch) -> Result<(), Failure> {
    // Of several equal entries the first counts, and the order of an admission and an end does not
    // matter, so each kind is stored by one statement. In the order of their ids, because two gateways
    // that store the same rows would otherwise wait for each other.
    let mut opened = BTreeMap::new();
    let mut closed = BTreeMap::new();
    for entry in &batch.entries {
        match entry {
            Entry::Opened(entry) => _ = opened.entry(entry.request_id.as_str()).or_insert(entry),
            Entry::Closed(entry) => _ = closed.entry(entry.request_id.as_str()).or_insert(entry),
        }
    }
    let mut due = Minutes::default();
    open(tx, &opened.into_values().collect::<Vec<_>>(), &mut due).await?;
    close(tx, &closed.into_values().collect::<Vec<_>>(), &mut due).await?;
    rollup::set_due(tx, due).await?;
    match &batch.shipped {
        Some(shipped) => set_shipped(tx, shipped).await,
        None => Ok(()),
    }
}

pub(super) async fn shipped(tx: &Transaction<'_>, run: &str) -> Result<u64, Failure> {
    let row = tx
        .query_opt("SELECT \"offset\" FROM shipped WHERE run = $1", &[&run])
        .await?;
    let offset = row.map_or(0, |row| row.get::<_, i64>(0));
    Ok(u64::try_from(offset).unwrap_or_default())
}

pub(super) async fn abandon(tx: &Transaction<'_>, run: &str) -> Result<u64, Failure> {
    let rows = tx
        .query(
            "UPDATE usage SET state = 'abandoned' WHERE run = $1 AND state = 'open'
             RETURNING at_ms, key, model",
            &[&run],
        )
        .await?;
    let mut due = Minutes::default();
    rows.iter().for_each(|row| due.add_row(row));
    rollup::set_due(tx, due).await?;
    tx.execute("DELETE FROM shipped WHERE run = $1", &[&run])
        .await?;
    Ok(rows.len() as u64)
}

async fn set_shipped(tx: &Transaction<'_>, shipped: &Shipped) -> Result<(), Failure> {
    let offset = i64::try_from(shipped.offset).unwrap_or(i64::MAX);
    tx.execute(
        "INSERT INTO shipped AS old (run, \"offset\") VALUES ($1, $2)
         ON CONFLICT (run) DO UPDATE SET \"offset\" = greatest(old.\"offset\", excluded.\"offset\")",
        &[&shipped.run, &offset],
    )
    .await?;
    Ok(())
}

/// Stores admissions: as new rows, or in rows that the ends of their requests have made.
async fn open(tx: &Transaction<'_>, entries: &[&Opened], due: &mut Minutes) -> Result<(), Failure> {
    if entries.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = entries
        .iter()
        .map(|entry| plain(&entry.request_id))
        .collect();
    // These rows will count in another minute.
    let moved = tx
        .query(
            "SELECT at_ms, key, model FROM usage WHERE request_id = ANY ($1) AND opened_ms IS NULL
             ORDER BY request_id FOR UPDATE",
            &[&ids],
        )
        .await?;
    moved.iter().for_each(|row| due.add_row(row));
    let texts = |text: fn(&Opened) -> &String| -> Vec<String> {
        entries.iter().map(|entry| plain(text(entry))).collect()
    };
    let numbers = |number: fn(&Opened) -> i64| -> Vec<i64> {
        entries.iter().map(|entry| number(entry)).collect()
    };
    let rows = tx
        .query(
            "INSERT INTO usage AS old (request_id, at_ms, opened_ms, replica, run, key, route,
               model, reserved_tokens, reserved_nanos, state)
             SELECT id, at_ms, at_ms, replica, run, key, route, model, tokens, nanos, 'open'
             FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[],
               $7::text[], $8::bigint[], $9::bigint[])
               AS new (id, at_ms, replica, run, key, route, model, tokens, nanos)
             ON CONFLICT (request_id) DO UPDATE SET at_ms = excluded.at_ms,
               opened_ms = excluded.at_ms, replica = excluded.replica, run = excluded.run,
               key = excluded.key, route = excluded.route, model = excluded.model,
               reserved_tokens = excluded.reserved_tokens, reserved_nanos = excluded.reserved_nanos
             WHERE old.opened_ms IS NULL
             RETURNING at_ms, key, model",
            &[
                &ids,
                &numbers(|entry| entry.at_ms),
                &texts(|entry| &entry.replica),
                &texts(|entry| &entry.run),
                &texts(|entry| &entry.key),
                &texts(|entry| &entry.route),
                &texts(|entry| &entry.model),
                &numbers(|entry| count(entry.reserved_tokens)),
                &numbers(|entry| nanos(entry.reserved_nanos)),
            ],
        )
        .await?;
    rows.iter().for_each(|row: &Row| due.add_row(row));
    Ok(())
}

/// Closes open rows, and makes closed ones of requests whose admission has not arrived yet.
async fn close(
    tx: &Transaction<'_>,
    entries: &[&Closed],
    due: &mut Minutes,
) -> Result<(), Failure> {
    if entries.is_empty() {
        return Ok(());
    }
    let numbers = |number: fn(&Closed) -> i64| -> Vec<i64> {
        entries.iter().map(|entry| number(entry)).collect()
    };
    let text = |text: fn(&Closed) -> Option<&String>| -> Vec<_> {
        entries.iter().map(|entry| text(entry).map(plain)).collect()
    };
    let times = numbers(|entry| entry.at_ms);
    let statuses = numbers(|entry| i64::from(entry.status));
    let pictures = numbers(|entry| count(entry.pictures));
    let ids = text(|entry| Some(&entry.request_id));
    let outcomes = text(|entry| Some(&entry.outcome));
    let targets = text(|entry| entry.target.as_ref());
    let service_tiers = text(|entry| entry.service_tier.as_ref());
    let missing_prices = text(|entry| entry.missing_prices.as_ref());
    let costs: Vec<_> = entries
        .iter()
        .map(|entry| entry.cost_nanos.map(nanos))
        .collect();
    let tokens: Vec<_> = entries
        .iter()
        .map(|entry| entry.tokens.values().map(count))
        .collect();
    let tokens: [Vec<i64>; TokenCounts::COLUMNS.len()] =
        std::array::from_fn(|at| tokens.iter().map(|counts| counts[at]).collect());
    let before: [&(dyn ToSql + Sync); 5] = [&ids, &times, &outcomes, &statuses, &targets];
    let after: [&(dyn ToSql + Sync); 4] = [&pictures, &costs, &service_tiers, &missing_prices];
    let tokens = tokens.iter().map(|counts| counts as &(dyn ToSql + Sync));
    let values: Vec<_> = before.into_iter().chain(tokens).chain(after).collect();
    let rows = tx.query(&*CLOSE, &values).await?;
    rows.iter().for_each(|row: &Row| due.add_row(row));
    Ok(())
}

/// Closes rows. The values are lists of the ids of the requests, of the times, and of each of
/// [`OF_END`].
static CLOSE: LazyLock<String> = LazyLock::new(|| {
    let columns = OF_END.join(", ");
    let lists: Vec<_> = OF_END
        .iter()
        .zip(3..)
        .map(|(column, at)| {
            let is_text = ["outcome", "target", "service_tier", "missing_prices"].contains(column);
            format!("${at}::{}[]", if is_text { "text" } else { "bigint" })
        })
        .collect();
    format!(
        "INSERT INTO usage AS old (request_id, state, at_ms, closed_ms, {columns})
         SELECT id, 'closed', at_ms, at_ms, {columns}
         FROM unnest($1::text[], $2::bigint[], {}) AS new (id, at_ms, {columns})
         ON CONFLICT (request_id) DO UPDATE SET state = 'closed', closed_ms = excluded.closed_ms, {}
         WHERE old.state = 'open'
         RETURNING at_ms, key, model",
        lists.join(", "),
        updates(),
    )
});
