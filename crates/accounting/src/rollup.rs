//! Sums of usage, as both kinds of store have them: by the minute, hour and day, and of deleted rows.

use std::sync::LazyLock;

use crate::query::{Granularity, UsageQuery};
use crate::tokens::TokenCounts;

/// The grain of the sums of deleted rows, each of [`KEPT`]. Other grains are lengths in milliseconds.
pub(crate) const DELETED: i64 = 1;

/// The length of the sums of deleted rows: a quarter of an hour, in milliseconds. The hours and days of
/// all time zones begin at its multiples.
pub(crate) const KEPT: i64 = 900_000;

/// The columns of the sums.
pub(crate) static SUMS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let before = ["requests", "open", "abandoned", "unpriced", "inexact"];
    let after = ["pictures", "cost_nanos", "open_nanos", "abandoned_nanos"];
    before
        .into_iter()
        .chain(TokenCounts::COLUMNS)
        .chain(after)
        .collect()
});

/// The place of the first token count in [`SUMS`].
pub(crate) const TOKENS: usize = 5;
/// The place of the first sum behind the token counts.
pub(crate) const AFTER_TOKENS: usize = TOKENS + TokenCounts::COLUMNS.len();

const MINUTE: i64 = Granularity::Minute.millis();
const HOUR: i64 = Granularity::Hour.millis();

/// Returns the beginning of the interval that contains `at_ms`.
pub(crate) fn floor(at_ms: i64, grain: i64) -> i64 {
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
pub(crate) fn condition(query: &UsageQuery) -> String {
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
