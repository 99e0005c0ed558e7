//! Rows of usage.

use rusqlite::{Connection, OptionalExtension as _, Row, named_params};

use super::failure::Failure;
use crate::query::RowQuery;
use crate::usage::{State, UsageRow};

/// The columns that [`read`] expects.
const COLUMNS: &str = "request_id, state, at_ms, closed_ms, replica, run, key, route, model, \
    reserved_tokens, reserved_nanos, outcome, status, target, input, cache_read, cache_write, \
    cache_write_1h, output, reasoning, pictures, cost_nanos";

pub(super) fn find(connection: &Connection, request_id: &str) -> Result<Option<UsageRow>, Failure> {
    Ok(connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM usage WHERE request_id = ?1"
        ))?
        .query_one([request_id], read)
        .optional()?)
}

pub(super) fn page(connection: &Connection, query: &RowQuery) -> Result<Vec<UsageRow>, Failure> {
    let first = query.from_ms.unwrap_or(i64::MIN);
    let (after_ms, after_id) = query.after.clone().unwrap_or((i64::MIN, String::new()));
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM usage
         WHERE at_ms >= :from AND (:to IS NULL OR at_ms < :to)
           AND (at_ms, request_id) > (:after_ms, :after_id)
           AND (:key IS NULL OR key = :key) AND (:model IS NULL OR model = :model)
         ORDER BY at_ms, request_id LIMIT :limit"
    ))?;
    let rows = statement.query_map(
        named_params! {
            ":from": first.max(after_ms),
            ":to": query.to_ms,
            ":after_ms": after_ms,
            ":after_id": after_id,
            ":key": query.key,
            ":model": query.model,
            ":limit": query.limit,
        },
        read,
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<UsageRow> {
    let count = |at| {
        row.get(at)
            .map(|value: i64| u64::try_from(value).unwrap_or_default())
    };
    let state: String = row.get(1)?;
    Ok(UsageRow {
        request_id: row.get(0)?,
        state: match state.as_str() {
            "open" => State::Open,
            "abandoned" => State::Abandoned,
            _ => State::Closed,
        },
        at_ms: row.get(2)?,
        closed_ms: row.get(3)?,
        replica: row.get(4)?,
        run: row.get(5)?,
        key: row.get(6)?,
        route: row.get(7)?,
        model: row.get(8)?,
        reserved_tokens: count(9)?,
        reserved_nanos: row.get(10)?,
        outcome: row.get(11)?,
        status: row.get(12)?,
        target: row.get(13)?,
        input: count(14)?,
        cache_read: count(15)?,
        cache_write: count(16)?,
        cache_write_1h: count(17)?,
        output: count(18)?,
        reasoning: count(19)?,
        pictures: count(20)?,
        cost_nanos: row.get(21)?,
    })
}
