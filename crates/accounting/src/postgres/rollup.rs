//! Sums by the minute, hour and day, as in the SQLite store.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use tokio_postgres::{Row, Transaction};

use super::failure::Failure;
use super::schema::{self, ROLLUP_LOCK};
use crate::query::Granularity;
use crate::rollup::{DELETED, KEPT, SUMS, floor};
use crate::tokens::TokenCounts;

const MINUTE: i64 = Granularity::Minute.millis();
const HOUR: i64 = Granularity::Hour.millis();
const DAY: i64 = Granularity::Day.millis();

/// The sums over rows of `usage`, in the order of [`SUMS`].
static OVER_ROWS: LazyLock<String> = LazyLock::new(|| {
    let before = "count(*), count(*) FILTER (WHERE state = 'open'), \
        count(*) FILTER (WHERE state = 'abandoned'), \
        count(*) FILTER (WHERE state = 'closed' AND cost_nanos IS NULL), \
        count(missing_prices)";
    let tokens = TokenCounts::COLUMNS.map(total).join(", ");
    let after = "sum(pictures)::bigint, coalesce(sum(cost_nanos), 0)::bigint, \
        coalesce(sum(reserved_nanos) FILTER (WHERE state = 'open'), 0)::bigint, \
        coalesce(sum(reserved_nanos) FILTER (WHERE state = 'abandoned'), 0)::bigint";
    format!("{before}, {tokens}, {after}")
});

/// The usage of keys and models in minutes, or in longer intervals.
#[derive(Debug, Default)]
pub(super) struct Minutes(BTreeSet<(i64, String, String)>);

impl Minutes {
    /// Adds the minute of a row whose columns are `at_ms`, `key` and `model`.
    pub(super) fn add_row(&mut self, row: &Row) {
        let at_ms: i64 = row.get(0);
        self.0
            .insert((floor(at_ms, MINUTE), row.get(1), row.get(2)));
    }

    /// Returns the intervals of this length that contain these.
    fn widened(self, grain: i64) -> Self {
        let longer = |(start, key, model)| (floor(start, grain), key, model);
        Self(self.0.into_iter().map(longer).collect())
    }

    /// Returns the three columns.
    fn columns(&self) -> (Vec<i64>, Vec<&str>, Vec<&str>) {
        let starts = self.0.iter().map(|(start, _, _)| *start);
        let keys = self.0.iter().map(|(_, key, _)| key.as_str());
        let models = self.0.iter().map(|(_, _, model)| model.as_str());
        (starts.collect(), keys.collect(), models.collect())
    }
}

/// Notes that the rows of these minutes have changed.
pub(super) async fn set_due(tx: &Transaction<'_>, due: Minutes) -> Result<(), Failure> {
    let (starts, keys, models) = due.columns();
    tx.execute(
        "INSERT INTO rollups_due (start_ms, key, model)
         SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
         ON CONFLICT DO NOTHING",
        &[&starts, &keys, &models],
    )
    .await?;
    Ok(())
}

/// Computes the sums of all minutes that are due, and of their hours and days.
pub(super) async fn bring_up_to_date(tx: &Transaction<'_>) -> Result<(), Failure> {
    schema::lock(tx, ROLLUP_LOCK).await?;
    // A minute that changes from here on is noted again, once this transaction has ended.
    let rows = tx
        .query(
            "DELETE FROM rollups_due RETURNING start_ms, key, model",
            &[],
        )
        .await?;
    let mut due = Minutes::default();
    rows.iter().for_each(|row| due.add_row(row));
    if due.0.is_empty() {
        return Ok(());
    }
    let rows = "SELECT at_ms AS moment, * FROM usage";
    sum(tx, &due, MINUTE, rows, &OVER_ROWS).await?;
    for (grain, below) in [(HOUR, [MINUTE, DELETED]), (DAY, [HOUR, HOUR])] {
        due = due.widened(grain);
        let parts = format!(
            "SELECT start_ms AS moment, * FROM rollups WHERE grain IN ({}, {})",
            below[0], below[1]
        );
        sum(tx, &due, grain, &parts, &over_sums()).await?;
    }
    Ok(())
}

/// Recomputes the sums of these intervals from `parts`.
async fn sum(
    tx: &Transaction<'_>,
    intervals: &Minutes,
    grain: i64,
    parts: &str,
    sums: &str,
) -> Result<(), Failure> {
    let (starts, keys, models) = intervals.columns();
    let due = "unnest($1::bigint[], $2::text[], $3::text[]) AS due (start, of_key, of_model)";
    tx.execute(
        &format!(
            "DELETE FROM rollups USING {due} WHERE grain = {grain} AND start_ms = start
             AND key = of_key AND model = of_model"
        ),
        &[&starts, &keys, &models],
    )
    .await?;
    tx.execute(
        &format!(
            "INSERT INTO rollups (grain, start_ms, key, model, {})
             SELECT {grain}, start, of_key, of_model, {sums} FROM {due}
             JOIN ({parts}) AS part ON key = of_key AND model = of_model
               AND moment >= start AND moment < start + {grain}
             GROUP BY start, of_key, of_model",
            SUMS.join(", ")
        ),
        &[&starts, &keys, &models],
    )
    .await?;
    Ok(())
}

/// Returns the expressions that add up the sums of several intervals.
pub(super) fn over_sums() -> String {
    let sums: Vec<_> = SUMS.iter().map(|column| total(column)).collect();
    sums.join(", ")
}

fn total(column: &str) -> String {
    format!("sum({column})::bigint")
}

/// Deletes the ended rows of the oldest hour that has any and lies before `before_ms`, and keeps
/// their sums. Returns the number of deleted rows, or `None` if there is no such hour.
pub(super) async fn fold_an_hour(
    tx: &Transaction<'_>,
    before_ms: i64,
) -> Result<Option<u64>, Failure> {
    bring_up_to_date(tx).await?;
    let oldest = tx
        .query_opt(
            "SELECT at_ms FROM usage WHERE at_ms < $1 AND state <> 'open' ORDER BY at_ms LIMIT 1",
            &[&floor(before_ms, HOUR)],
        )
        .await?;
    let Some(start) = oldest.map(|row| floor(row.get(0), HOUR)) else {
        return Ok(None);
    };
    let end = start.saturating_add(HOUR);
    let add = |column: &&str| format!("{column} = old.{column} + excluded.{column}");
    let added: Vec<_> = SUMS.iter().map(add).collect();
    // One statement, so that the rows that are counted are those that are deleted.
    let sql = format!(
        "WITH gone AS (
           DELETE FROM usage WHERE at_ms >= $1 AND at_ms < $2 AND state <> 'open' RETURNING *
         ), kept AS (
           INSERT INTO rollups AS old (grain, start_ms, key, model, {})
           SELECT {DELETED}, $1 + (at_ms - $1) / {KEPT} * {KEPT} AS start, key, model, {}
           FROM gone GROUP BY start, key, model
           ON CONFLICT (grain, start_ms, key, model) DO UPDATE SET {}
         )
         SELECT at_ms, key, model FROM gone",
        SUMS.join(", "),
        *OVER_ROWS,
        added.join(", ")
    );
    let deleted = tx.query(&sql, &[&start, &end]).await?;
    tx.execute(
        "DELETE FROM rollups WHERE grain = $1 AND start_ms >= $2 AND start_ms < $3",
        &[&MINUTE, &start, &end],
    )
    .await?;
    let left = tx
        .query(
            "SELECT at_ms, key, model FROM usage WHERE at_ms >= $1 AND at_ms < $2",
            &[&start, &end],
        )
        .await?;
    // Rows may also have come since the sums were computed.
    let mut due = Minutes::default();
    deleted.iter().chain(&left).for_each(|row| due.add_row(row));
    set_due(tx, due).await?;
    Ok(Some(deleted.len() as u64))
}
