//! Entries of the journal, each stored exactly once by its request id.

use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension as _, ToSql, named_params, params};

use super::failure::Failure;
use super::rollup::{self, Minute};
use crate::columns::{OF_END, updates};
use crate::usage::{Batch, Closed, Entry, Opened, Shipped, count, nanos};

pub(super) fn append(connection: &Connection, batch: &Batch) -> Result<(), Failure> {
    for entry in &batch.entries {
        match entry {
            Entry::Opened(opened) => open(connection, opened)?,
            Entry::Closed(closed) => close(connection, closed)?,
        }
    }
    match &batch.shipped {
        Some(shipped) => set_shipped(connection, shipped),
        None => Ok(()),
    }
}

pub(super) fn shipped(connection: &Connection, run: &str) -> Result<u64, Failure> {
    let offset: Option<i64> = connection
        .prepare_cached("SELECT \"offset\" FROM shipped WHERE run = ?1")?
        .query_one([run], |row| row.get(0))
        .optional()?;
    Ok(offset.map_or(0, |offset| u64::try_from(offset).unwrap_or_default()))
}

pub(super) fn abandon(connection: &Connection, run: &str) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached(
        "UPDATE usage SET state = 'abandoned' WHERE run = ?1 AND state = 'open'
         RETURNING at_ms, key, model",
    )?;
    let changed: Vec<Minute> = statement
        .query_map([run], Minute::read)?
        .collect::<Result<_, _>>()?;
    for minute in &changed {
        rollup::set_due(connection, minute)?;
    }
    connection
        .prepare_cached("DELETE FROM shipped WHERE run = ?1")?
        .execute([run])?;
    Ok(u64::try_from(changed.len()).unwrap_or(u64::MAX))
}

fn set_shipped(connection: &Connection, shipped: &Shipped) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO shipped (run, \"offset\") VALUES (?1, ?2)
             ON CONFLICT (run) DO UPDATE SET \"offset\" = max(\"offset\", excluded.\"offset\")",
        )?
        .execute(params![
            shipped.run,
            i64::try_from(shipped.offset).unwrap_or(i64::MAX)
        ])?;
    Ok(())
}

fn open(connection: &Connection, opened: &Opened) -> Result<(), Failure> {
    let is_new = insert_open(connection, opened)?;
    let placeholder = match is_new {
        true => None,
        false => complete(connection, opened)?,
    };
    if is_new || placeholder.is_some() {
        let minute = Minute::new(opened.at_ms, &opened.key, &opened.model);
        rollup::set_due(connection, &minute)?;
    }
    match placeholder {
        Some(minute) => rollup::set_due(connection, &minute),
        None => Ok(()),
    }
}

fn insert_open(connection: &Connection, opened: &Opened) -> Result<bool, Failure> {
    let inserted = connection
        .prepare_cached(
            "INSERT INTO usage (request_id, state, at_ms, opened_ms, replica, run, key, route,
               model, reserved_tokens, reserved_nanos)
             VALUES (:request_id, 'open', :at_ms, :at_ms, :replica, :run, :key, :route, :model,
               :reserved_tokens, :reserved_nanos)
             ON CONFLICT (request_id) DO NOTHING",
        )?
        .execute(named_params! {
            ":request_id": opened.request_id,
            ":at_ms": opened.at_ms,
            ":replica": opened.replica,
            ":run": opened.run,
            ":key": opened.key,
            ":route": opened.route,
            ":model": opened.model,
            ":reserved_tokens": count(opened.reserved_tokens),
            ":reserved_nanos": nanos(opened.reserved_nanos),
        })?;
    Ok(inserted > 0)
}

/// Adds the admission to a row that was made by the end of its request. Returns the minute in which
/// the row counted before, or `None` if its admission was known already.
fn complete(connection: &Connection, opened: &Opened) -> Result<Option<Minute>, Failure> {
    let before = connection
        .prepare_cached(
            "SELECT at_ms, key, model FROM usage WHERE request_id = ?1 AND opened_ms IS NULL",
        )?
        .query_one([&opened.request_id], Minute::read)
        .optional()?;
    if before.is_none() {
        return Ok(None);
    }
    connection
        .prepare_cached(
            "UPDATE usage SET at_ms = :at_ms, opened_ms = :at_ms, replica = :replica, run = :run,
               key = :key, route = :route, model = :model, reserved_tokens = :reserved_tokens,
               reserved_nanos = :reserved_nanos
             WHERE request_id = :request_id",
        )?
        .execute(named_params! {
            ":request_id": opened.request_id,
            ":at_ms": opened.at_ms,
            ":replica": opened.replica,
            ":run": opened.run,
            ":key": opened.key,
            ":route": opened.route,
            ":model": opened.model,
            ":reserved_tokens": count(opened.reserved_tokens),
            ":reserved_nanos": nanos(opened.reserved_nanos),
        })?;
    Ok(before)
}

/// Closes an open row, or makes a closed one if the admission has not arrived yet. A row that is
/// closed or abandoned stays as it is.
fn close(connection: &Connection, closed: &Closed) -> Result<(), Failure> {
    let tokens = closed.tokens.values().map(count);
    let mut values: Vec<&dyn ToSql> = vec![
        &closed.request_id,
        &closed.at_ms,
        &closed.outcome,
        &closed.status,
        &closed.target,
    ];
    values.extend(tokens.iter().map(|count| count as &dyn ToSql));
    let (pictures, cost) = (count(closed.pictures), closed.cost_nanos.map(nanos));
    let after: [&dyn ToSql; 4] = [
        &pictures,
        &cost,
        &closed.service_tier,
        &closed.missing_prices,
    ];
    values.extend(after);
    let changed = connection
        .prepare_cached(&CLOSE)?
        .query_one(&*values, Minute::read)
        .optional()?;
    changed.map_or(Ok(()), |minute| rollup::set_due(connection, &minute))
}

/// Closes a row. The values are the id of the request, the time, and [`OF_END`].
static CLOSE: LazyLock<String> = LazyLock::new(|| {
    let values: Vec<_> = (3..3 + OF_END.len()).map(|at| format!("?{at}")).collect();
    format!(
        "INSERT INTO usage (request_id, state, at_ms, closed_ms, {})
         VALUES (?1, 'closed', ?2, ?2, {})
         ON CONFLICT (request_id) DO UPDATE SET state = 'closed', closed_ms = excluded.closed_ms, {}
         WHERE state = 'open'
         RETURNING at_ms, key, model",
        OF_END.join(", "),
        values.join(", "),
        updates(),
    )
});
