//! Sums of usage, read from the sums by the minute, hour and day, and of deleted rows.

use std::sync::LazyLock;

use super::Value::Given;
use super::rows::tokens;
use super::{Failure, Row, Session};
use crate::query::{Granularity, Totals, UsageQuery, UsageSum};
use crate::tokens::TokenCounts;

/// The grain of the sums of deleted rows, each of [`KEPT`]. Other grains are lengths in milliseconds.
pub(super) const DELETED: i64 = 1;

/// The length of the sums of deleted rows: a quarter of an hour, in milliseconds. The hours and days of
/// all time zones begin at its multiples.
pub(super) const KEPT: i64 = 900_000;

/// The columns of the sums.
pub(super) static SUMS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let before = ["requests", "open", "abandoned", "unpriced", "inexact"];
    let after = ["pictures", "cost_nanos", "open_nanos", "abandoned_nanos"];
    before
        .into_iter()
        .chain(TokenCounts::COLUMNS)
        .chain(after)
        .collect()
});

/// The place of the first token count behind the three columns by which sums are grouped.
const TOKENS: usize = 3 + 5;
/// The place of the first sum behind the token counts.
const AFTER_TOKENS: usize = TOKENS + TokenCounts::COLUMNS.len();

/// The grain of the sums by the minute.
pub(super) const MINUTE: i64 = Granularity::Minute.millis();
/// The grain of the sums by the hour.
pub(super) const HOUR: i64 = Granularity::Hour.millis();

/// Returns the sums that `query` asks for, in order of time, key and model.
pub(crate) async fn usage(
    session: &impl Session,
    query: &UsageQuery,
) -> Result<Vec<UsageSum>, Failure> {
    let group = [
        (query.granularity.is_some(), "start_ms", "bigint"),
        (query.by_key, "key", "text"),
        (query.by_model, "model", "text"),
    ]
    .map(|(is_asked, column, kind)| match is_asked {
        true => column.to_owned(),
        false => format!("CAST(NULL AS {kind})"),
    })
    .join(", ");
    let sql = format!(
        "SELECT {group}, {} FROM rollups
         WHERE ({}) AND (key = $1 OR $1 IS NULL) AND (model = $2 OR $2 IS NULL)
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        over_sums(),
        condition(query),
    );
    let values = [&query.key, &query.model].map(|name| Given(name.as_deref()));
    session.query(&sql, &values, read).await
}

fn read(row: &dyn Row) -> Result<UsageSum, Failure> {
    Ok(UsageSum {
        start_ms: row.number_or_null(0)?,
        key: row.text_or_null(1)?,
        model: row.text_or_null(2)?,
        totals: Totals {
            requests: row.count(3)?,
            open: row.count(4)?,
            abandoned: row.count(5)?,
            unpriced: row.count(6)?,
            inexact: row.count(7)?,
            tokens: tokens(row, TOKENS)?,
            pictures: row.count(AFTER_TOKENS)?,
            cost_nanos: row.number(AFTER_TOKENS + 1)?,
            open_nanos: row.number(AFTER_TOKENS + 2)?,
            abandoned_nanos: row.number(AFTER_TOKENS + 3)?,
        },
    })
}

/// Returns the expressions that add up the sums of several intervals.
pub(super) fn over_sums() -> String {
    let sums: Vec<_> = SUMS.iter().map(|column| total(column)).collect();
    sums.join(", ")
}

/// Returns the expression that adds up a column.
pub(super) fn total(column: &str) -> String {
    format!("CAST(sum({column}) AS bigint)")
}

/// Returns the beginning of the interval that contains `at_ms`.
pub(super) fn floor(at_ms: i64, grain: i64) -> i64 {
    at_ms.saturating_sub(at_ms.rem_euclid(grain))
}

/// Returns the beginning of the first interval that does not begin before `at_ms`.
fn ceil(at_ms: i64, grain: i64) -> i64 {
    match floor(at_ms, grain) {
        start if start == at_ms => start,
        start => start.saturating_add(grain),
    }
}

/// Returns the SQL condition for the sums that make up the interval of `query`.
fn condition(query: &UsageQuery) -> String {
    let grain = query.granularity.map_or(MINUTE, Granularity::millis);
    let from = query.from_ms.map(|at_ms| floor(at_ms, grain));
    let to = query.to_ms.map(|at_ms| ceil(at_ms, grain));
    if query.granularity.is_some() {
        return between(&[grain], from, to);
    }
    // Whole hours are read as such, and only what is left at both ends by the minute.
    let ends = [MINUTE, DELETED];
    let first_hour = from.map(|at_ms| ceil(at_ms, HOUR));
    let last_hour = to.map(|at_ms| floor(at_ms, HOUR));
    if let (Some(first), Some(last)) = (first_hour, last_hour)
        && first > last
    {
        return between(&ends, from, to);
    }
    let mut parts = vec![between(&[HOUR], first_hour, last_hour)];
    parts.extend(from.map(|_| between(&ends, from, first_hour)));
    parts.extend(to.map(|_| between(&ends, last_hour, to)));
    parts.join(" OR ")
}

fn between(grains: &[i64], from: Option<i64>, to: Option<i64>) -> String {
    let grains: Vec<_> = grains.iter().map(i64::to_string).collect();
    let mut parts = vec![format!("grain IN ({})", grains.join(", "))];
    parts.extend(from.map(|from| format!("start_ms >= {from}")));
    parts.extend(to.map(|to| format!("start_ms < {to}")));
    format!("({})", parts.join(" AND "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(from_ms: Option<i64>, to_ms: Option<i64>) -> String {
        condition(&UsageQuery {
            from_ms,
            to_ms,
            ..UsageQuery::default()
        })
    }

    #[test]
    fn whole_hours_are_read_as_such() {
        assert_eq!(asked(None, None), "(grain IN (3600000))");
        assert_eq!(
            asked(Some(3_540_001), Some(7_260_000)),
            "(grain IN (3600000) AND start_ms >= 3600000 AND start_ms < 7200000) OR \
             (grain IN (60000, 1) AND start_ms >= 3540000 AND start_ms < 3600000) OR \
             (grain IN (60000, 1) AND start_ms >= 7200000 AND start_ms < 7260000)"
        );
        assert_eq!(
            asked(Some(60_000), Some(119_999)),
            "(grain IN (60000, 1) AND start_ms >= 60000 AND start_ms < 120000)"
        );
    }

    #[test]
    fn times_before_1970_are_rounded_down() {
        assert_eq!(floor(-1, 60_000), -60_000);
        assert_eq!(floor(i64::MIN, 60_000), i64::MIN);
        assert_eq!(ceil(i64::MAX, 60_000), i64::MAX);
    }
}
