//! Sums of usage, read from the sums by the minute, hour and day.

use rusqlite::{Connection, Row, named_params};

use super::failure::Failure;
use super::rollup::over_sums;
use super::rows::tokens;
use crate::query::{Totals, UsageQuery, UsageSum};
use crate::rollup::{AFTER_TOKENS, TOKENS, condition};

pub(super) fn usage(connection: &Connection, query: &UsageQuery) -> Result<Vec<UsageSum>, Failure> {
    let group = group(query);
    let mut statement = connection.prepare(&format!(
        "SELECT {group}, {} FROM rollups
         WHERE ({}) AND (:key IS NULL OR key = :key) AND (:model IS NULL OR model = :model)
         GROUP BY {group} ORDER BY {group}",
        over_sums(),
        condition(query),
    ))?;
    let keys = named_params! {":key": query.key, ":model": query.model};
    let sums = statement.query_map(keys, read)?;
    Ok(sums.collect::<Result<_, _>>()?)
}

/// Returns the three columns by which sums are grouped, NULL for those that are not asked for.
fn group(query: &UsageQuery) -> String {
    [
        (query.granularity.is_some(), "start_ms"),
        (query.by_key, "key"),
        (query.by_model, "model"),
    ]
    .map(|(is_asked, column)| if is_asked { column } else { "NULL" })
    .join(", ")
}

fn read(row: &Row<'_>) -> rusqlite::Result<UsageSum> {
    let count = |at| {
        row.get(at)
            .map(|value: i64| u64::try_from(value).unwrap_or_default())
    };
    Ok(UsageSum {
        start_ms: row.get(0)?,
        key: row.get(1)?,
        model: row.get(2)?,
        totals: Totals {
            requests: count(3)?,
            open: count(4)?,
            abandoned: count(5)?,
            unpriced: count(6)?,
            inexact: count(7)?,
            tokens: tokens(row, GROUPS + TOKENS)?,
            pictures: count(GROUPS + AFTER_TOKENS)?,
            cost_nanos: row.get(GROUPS + AFTER_TOKENS + 1)?,
            open_nanos: row.get(GROUPS + AFTER_TOKENS + 2)?,
            abandoned_nanos: row.get(GROUPS + AFTER_TOKENS + 3)?,
        },
    })
}

/// The columns by which sums are grouped, which come before them.
const GROUPS: usize = 3;
