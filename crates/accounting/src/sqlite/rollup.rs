//! Sums by the minute, hour and day. They are always computed from the level below them, never
//! incremented: minutes from rows, hours from minutes, days from hours.

use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::Failure;
use crate::query::Granularity;
use crate::rollup::{DELETED, KEPT, SUMS, floor};
use crate::tokens::TokenCounts;

/// The sums over rows of `usage`, in the order of [`SUMS`].
static OVER_ROWS: LazyLock<String> = LazyLock::new(|| {
    let before = "count(*), sum(state = 'open'), sum(state = 'abandoned'), \
        sum(state = 'closed' AND cost_nanos IS NULL), sum(missing_prices IS NOT NULL)";
    let tokens = TokenCounts::COLUMNS
        .map(|column| format!("sum({column})"))
        .join(", ");
    let after = "sum(pictures), sum(ifnull(cost_nanos, 0)), \
        sum(iif(state = 'open', reserved_nanos, 0)), \
        sum(iif(state = 'abandoned', reserved_nanos, 0))";
    format!("{before}, {tokens}, {after}")
});

const MINUTE: i64 = Granularity::Minute.millis();
const HOUR: i64 = Granularity::Hour.millis();
const DAY: i64 = Granularity::Day.millis();

/// The usage of a key and a model in one minute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Minute {
    start_ms: i64,
    key: String,
    model: String,
}

impl Minute {
    /// Returns the minute that contains `at_ms`.
    pub(super) fn new(at_ms: i64, key: &str, model: &str) -> Self {
        Self {
            start_ms: floor(at_ms, MINUTE),
            key: key.to_owned(),
            model: model.to_owned(),
        }
    }

    /// Reads the columns `at_ms`, `key` and `model`.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            start_ms: floor(row.get(0)?, MINUTE),
            key: row.get(1)?,
            model: row.get(2)?,
        })
    }

    /// Returns the longer interval that contains this one.
    fn widened(self, grain: i64) -> Self {
        Self {
            start_ms: floor(self.start_ms, grain),
            ..self
        }
    }
}

/// Notes that the rows of a minute have changed.
pub(super) fn set_due(connection: &Connection, minute: &Minute) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO rollups_due (start_ms, key, model) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![minute.start_ms, minute.key, minute.model])?;
    Ok(())
}

/// Computes the sums of all minutes that are due, and of their hours and days.
pub(super) fn bring_up_to_date(connection: &Connection) -> Result<(), Failure> {
    let mut due: Vec<Minute> = connection
        .prepare_cached("SELECT start_ms, key, model FROM rollups_due")?
        .query_map([], Minute::read)?
        .collect::<Result<_, _>>()?;
    for minute in &due {
        sum_minute(connection, minute)?;
    }
    for (grain, below) in [(HOUR, [MINUTE, DELETED]), (DAY, [HOUR, HOUR])] {
        due = due
            .into_iter()
            .map(|minute| minute.widened(grain))
            .collect();
        due.sort_unstable();
        due.dedup();
        for interval in &due {
            sum_longer(connection, interval, grain, below)?;
        }
    }
    connection
        .prepare_cached("DELETE FROM rollups_due")?
        .execute([])?;
    Ok(())
}

fn sum_minute(connection: &Connection, minute: &Minute) -> Result<(), Failure> {
    clear(connection, minute, MINUTE)?;
    connection
        .prepare_cached(&format!(
            "INSERT INTO rollups (grain, start_ms, key, model, {})
             SELECT {MINUTE}, ?1, key, model, {} FROM usage
             WHERE key = ?2 AND model = ?3 AND at_ms >= ?1 AND at_ms < ?1 + {MINUTE}
             GROUP BY key, model",
            SUMS.join(", "),
            *OVER_ROWS,
        ))?
        .execute(params![minute.start_ms, minute.key, minute.model])?;
    Ok(())
}

fn sum_longer(
    connection: &Connection,
    interval: &Minute,
    grain: i64,
    below: [i64; 2],
) -> Result<(), Failure> {
    clear(connection, interval, grain)?;
    connection
        .prepare_cached(&format!(
            "INSERT INTO rollups (grain, start_ms, key, model, {})
             SELECT {grain}, ?1, key, model, {} FROM rollups
             WHERE grain IN ({}, {}) AND start_ms >= ?1 AND start_ms < ?1 + {grain}
               AND key = ?2 AND model = ?3
             GROUP BY key, model",
            SUMS.join(", "),
            over_sums(),
            below[0],
            below[1],
        ))?
        .execute(params![interval.start_ms, interval.key, interval.model])?;
    Ok(())
}

/// Returns the expressions that add up the sums of several intervals.
pub(super) fn over_sums() -> String {
    let sums: Vec<_> = SUMS.iter().map(|column| format!("sum({column})")).collect();
    sums.join(", ")
}

fn clear(connection: &Connection, interval: &Minute, grain: i64) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "DELETE FROM rollups WHERE grain = ?1 AND start_ms = ?2 AND key = ?3 AND model = ?4",
        )?
        .execute(params![
            grain,
            interval.start_ms,
            interval.key,
            interval.model
        ])?;
    Ok(())
}

/// Deletes the ended rows of the oldest hour that has any and lies before `before_ms`, and keeps
/// their sums. Returns the number of deleted rows, or `None` if there is no such hour.
pub(super) fn fold_an_hour(
    connection: &Connection,
    before_ms: i64,
) -> Result<Option<u64>, Failure> {
    bring_up_to_date(connection)?;
    let before_ms = floor(before_ms, HOUR);
    let oldest: Option<i64> = connection
        .prepare_cached(
            "SELECT at_ms FROM usage WHERE at_ms < ?1 AND state <> 'open' ORDER BY at_ms LIMIT 1",
        )?
        .query_one([before_ms], |row| row.get(0))
        .optional()?;
    let Some(start) = oldest.map(|at_ms| floor(at_ms, HOUR)) else {
        return Ok(None);
    };
    keep_sums(connection, start)?;
    let deleted = connection
        .prepare_cached("DELETE FROM usage WHERE at_ms >= ?1 AND at_ms < ?2 AND state <> 'open'")?
        .execute([start, start.saturating_add(HOUR)])?;
    connection
        .prepare_cached(
            "DELETE FROM rollups WHERE grain = ?1 AND start_ms >= ?2 AND start_ms < ?3",
        )?
        .execute([MINUTE, start, start.saturating_add(HOUR)])?;
    set_open_due(connection, start)?;
    Ok(Some(u64::try_from(deleted).unwrap_or(u64::MAX)))
}

/// Adds the ended rows of an hour to the sums of its deleted rows, by the quarter of an hour. The rows are deleted in the same
/// transaction, so that each is added once.
fn keep_sums(connection: &Connection, start: i64) -> Result<(), Failure> {
    let add = |column: &&str| format!("{column} = {column} + excluded.{column}");
    let added: Vec<_> = SUMS.iter().map(add).collect();
    connection
        .prepare_cached(&format!(
            "INSERT INTO rollups (grain, start_ms, key, model, {})
             SELECT {DELETED}, ?1 + (at_ms - ?1) / {KEPT} * {KEPT} AS start, key, model, {}
             FROM usage WHERE at_ms >= ?1 AND at_ms < ?2 AND state <> 'open'
             GROUP BY start, key, model
             ON CONFLICT (grain, start_ms, key, model) DO UPDATE SET {}",
            SUMS.join(", "),
            *OVER_ROWS,
            added.join(", "),
        ))?
        .execute([start, start.saturating_add(HOUR)])?;
    Ok(())
}

/// Notes that the minutes of the rows that are still open have to be summed again.
fn set_open_due(connection: &Connection, start: i64) -> Result<(), Failure> {
    let open: Vec<Minute> = connection
        .prepare_cached("SELECT at_ms, key, model FROM usage WHERE at_ms >= ?1 AND at_ms < ?2")?
        .query_map([start, start.saturating_add(HOUR)], Minute::read)?
        .collect::<Result<_, _>>()?;
    open.iter()
        .try_for_each(|minute| set_due(connection, minute))
}
