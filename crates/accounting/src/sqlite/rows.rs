//! Rows of usage.

use rusqlite::{Connection, OptionalExtension as _, Row, named_params};

use super::failure::Failure;
use crate::columns::{AFTER_TOKENS, OF_ROW, TOKENS};
use crate::query::RowQuery;
use crate::tokens::TokenCounts;
use crate::usage::{State, UsageRow};

pub(super) fn find(connection: &Connection, request_id: &str) -> Result<Option<UsageRow>, Failure> {
    Ok(connection
        .prepare_cached(&format!(
            "SELECT {} FROM usage WHERE request_id = ?1",
            *OF_ROW
        ))?
        .query_one([request_id], read)
        .optional()?)
}

pub(super) fn page(connection: &Connection, query: &RowQuery) -> Result<Vec<UsageRow>, Failure> {
    let first = query.from_ms.unwrap_or(i64::MIN);
    let (after_ms, after_id) = query.after.clone().unwrap_or((i64::MIN, String::new()));
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {} FROM usage
         WHERE at_ms >= :from AND (:to IS NULL OR at_ms < :to)
           AND (at_ms, request_id) > (:after_ms, :after_id)
           AND (:key IS NULL OR key = :key) AND (:model IS NULL OR model = :model)
         ORDER BY at_ms, request_id LIMIT :limit",
        *OF_ROW
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
        tokens: tokens(row, TOKENS)?,
        pictures: count(AFTER_TOKENS)?,
        cost_nanos: row.get(AFTER_TOKENS + 1)?,
        service_tier: row.get(AFTER_TOKENS + 2)?,
        missing_prices: row.get(AFTER_TOKENS + 3)?,
    })
}

/// Reads the token counts that begin at this column.
pub(super) fn tokens(row: &Row<'_>, first: usize) -> rusqlite::Result<TokenCounts> {
    let mut counts = [0; TokenCounts::COLUMNS.len()];
    for (at, count) in (first..).zip(&mut counts) {
        *count = row.get::<_, i64>(at)?.try_into().unwrap_or_default();
    }
    Ok(counts.into())
}
