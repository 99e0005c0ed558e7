//! Sums by the minute, hour and day. They are always computed from the level below them, never
//! incremented: minutes from rows, hours from minutes, days from hours.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::Value::{Given, Number};
use super::sums::{DELETED, HOUR, KEPT, MINUTE, SUMS, floor, over_sums, total};
use super::{Failure, Row, Session, Value};
use crate::query::Granularity;
use crate::tokens::TokenCounts;

const DAY: i64 = Granularity::Day.millis();

/// The sums over rows of `usage`, in the order of [`SUMS`].
static OVER_ROWS: LazyLock<String> = LazyLock::new(|| {
    let before = "count(*), count(*) FILTER (WHERE state = 'open'), \
        count(*) FILTER (WHERE state = 'abandoned'), \
        count(*) FILTER (WHERE state = 'closed' AND cost_nanos IS NULL), \
        count(missing_prices)";
    let tokens = TokenCounts::COLUMNS.map(total).join(", ");
    let after = [
        "pictures",
        "coalesce(cost_nanos, 0)",
        "CASE state WHEN 'open' THEN reserved_nanos ELSE 0 END",
        "CASE state WHEN 'abandoned' THEN reserved_nanos ELSE 0 END",
    ];
    format!("{before}, {tokens}, {}", after.map(total).join(", "))
});

/// The usage of a key and a model in a minute, or in a longer interval, which begins at this time.
type Interval = (i64, String, String);

/// The usage of keys and models in minutes, or in longer intervals.
#[derive(Debug, Default)]
pub(super) struct Minutes(BTreeSet<Interval>);

impl Minutes {
    /// Adds the minute that contains this time.
    pub(super) fn add(&mut self, at_ms: i64, key: String, model: String) {
        self.0.insert((floor(at_ms, MINUTE), key, model));
    }

    /// Adds minutes.
    pub(super) fn extend(&mut self, minutes: Vec<Interval>) {
        self.0.extend(minutes);
    }

    /// Returns the intervals of this length that contain these.
    fn widened(self, grain: i64) -> Self {
        let longer = |(start, key, model)| (floor(start, grain), key, model);
        Self(self.0.into_iter().map(longer).collect())
    }

    /// Returns the intervals as rows of values.
    fn values(&self) -> Vec<Vec<Value<'_>>> {
        self.0
            .iter()
            .map(|(start, key, model)| {
                vec![Number(Some(*start)), Given(Some(key)), Given(Some(model))]
            })
            .collect()
    }
}

/// Reads the minute of a row whose columns are `at_ms`, `key` and `model`.
pub(super) fn read_minute(row: &dyn Row) -> Result<Interval, Failure> {
    Ok((floor(row.number(0)?, MINUTE), row.text(1)?, row.text(2)?))
}

/// Notes that the rows of these minutes have changed.
pub(super) async fn set_due(session: &impl Session, due: &Minutes) -> Result<(), Failure> {
    let note = |due: &str| {
        format!("INSERT INTO rollups_due (start_ms, key, model) {due} ON CONFLICT DO NOTHING")
    };
    let noted = session.query_rows(&due.values(), note, |_| Ok(())).await;
    noted.map(drop)
}

/// Computes the sums of all minutes that are due, and of their hours and days.
pub(crate) async fn bring_up_to_date<S: Session>(session: &S) -> Result<(), Failure> {
    if let Some(sql) = S::LOCK_SUMS {
        session.execute(sql, &[]).await?;
    }
    // A minute that changes from here on is noted again, once this transaction has ended.
    let sql = "DELETE FROM rollups_due RETURNING start_ms, key, model";
    let mut due = Minutes::default();
    due.extend(session.query(sql, &[], read_minute).await?);
    let rows = "SELECT at_ms AS moment, * FROM usage";
    sum(session, &due, MINUTE, rows, &OVER_ROWS).await?;
    for (grain, below) in [(HOUR, [MINUTE, DELETED]), (DAY, [HOUR, HOUR])] {
        due = due.widened(grain);
        let parts = format!(
            "SELECT start_ms AS moment, * FROM rollups WHERE grain IN ({}, {})",
            below[0], below[1]
        );
        sum(session, &due, grain, &parts, &over_sums()).await?;
    }
    Ok(())
}

/// Recomputes the sums of these intervals from `parts`.
async fn sum<S: Session>(
    session: &S,
    intervals: &Minutes,
    grain: i64,
    parts: &str,
    sums: &str,
) -> Result<(), Failure> {
    let clear = |due: &str| {
        format!(
            "DELETE FROM rollups WHERE grain = {grain} AND (start_ms, key, model) {} ({due})",
            S::IS_IN
        )
    };
    let add = |due: &str| {
        let columns = SUMS.join(", ");
        format!(
            "WITH due (start, of_key, of_model) AS ({due})
             INSERT INTO rollups (grain, start_ms, key, model, {columns})
             SELECT {grain}, start, of_key, of_model, {sums} FROM due
             JOIN ({parts}) AS part ON key = of_key AND model = of_model
               AND moment >= start AND moment < start + {grain}
             GROUP BY start, of_key, of_model"
        )
    };
    let due = intervals.values();
    session.query_rows(&due, clear, |_| Ok(())).await?;
    session.query_rows(&due, add, |_| Ok(())).await?;
    Ok(())
}

/// Deletes the ended rows of the oldest hour that has any and lies before `before_ms`, and keeps
/// their sums. Returns the number of deleted rows, or `None` if there is no such hour.
pub(crate) async fn fold_an_hour(
    session: &impl Session,
    before_ms: i64,
) -> Result<Option<u64>, Failure> {
    bring_up_to_date(session).await?;
    let oldest =
        "SELECT at_ms FROM usage WHERE at_ms < $1 AND state <> 'open' ORDER BY at_ms LIMIT 1";
    let before = [Number(Some(floor(before_ms, HOUR)))];
    let oldest = session.query(oldest, &before, |row| row.number(0)).await?;
    let Some(start) = oldest.first().map(|at_ms| floor(*at_ms, HOUR)) else {
        return Ok(None);
    };
    let hour = [start, start.saturating_add(HOUR)].map(|at_ms| Number(Some(at_ms)));
    let (deleted, mut due) = delete(session, &hour).await?;
    let sql =
        format!("DELETE FROM rollups WHERE grain = {MINUTE} AND start_ms >= $1 AND start_ms < $2");
    session.execute(&sql, &hour).await?;
    let left = "SELECT at_ms, key, model FROM usage WHERE at_ms >= $1 AND at_ms < $2";
    due.extend(session.query(left, &hour, read_minute).await?);
    set_due(session, &due).await?;
    Ok(Some(deleted))
}

/// Deletes the ended rows of an hour, and adds them to the sums of its deleted rows. Returns the
/// number of deleted rows, and their minutes as far as rows may have come since the sums were
/// computed.
async fn delete<S: Session>(session: &S, hour: &[Value<'_>]) -> Result<(u64, Minutes), Failure> {
    let ended = "usage WHERE at_ms >= $1 AND at_ms < $2 AND state <> 'open'";
    if !S::WRITES_IN_WITH {
        // No other transaction writes in between.
        session.execute(&keep_sums(ended), hour).await?;
        let sql = format!("DELETE FROM {ended}");
        let deleted = session.execute(&sql, hour).await?;
        return Ok((deleted, Minutes::default()));
    }
    // One statement, so that the rows that are counted are those that are deleted.
    let sql = format!(
        "WITH gone AS (DELETE FROM {ended} RETURNING *), kept AS ({})
         SELECT at_ms, key, model FROM gone",
        keep_sums("gone")
    );
    let deleted = session.query(&sql, hour, read_minute).await?;
    let count = u64::try_from(deleted.len()).unwrap_or(u64::MAX);
    let mut due = Minutes::default();
    due.extend(deleted);
    Ok((count, due))
}

/// Returns the statement that adds rows to the sums of deleted rows, by the quarter of an hour.
fn keep_sums(rows: &str) -> String {
    let add = |column: &&str| format!("{column} = old.{column} + excluded.{column}");
    let added: Vec<_> = SUMS.iter().map(add).collect();
    format!(
        "INSERT INTO rollups AS old (grain, start_ms, key, model, {})
         SELECT {DELETED}, $1 + (at_ms - $1) / {KEPT} * {KEPT} AS start, key, model, {}
         FROM {rows} GROUP BY start, key, model
         ON CONFLICT (grain, start_ms, key, model) DO UPDATE SET {}",
        SUMS.join(", "),
        *OVER_ROWS,
        added.join(", ")
    )
}
