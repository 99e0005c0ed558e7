//! Questions about usage, and their answers.

use serde::Serialize;

use crate::tokens::TokenCounts;

/// A question for sums of usage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// The first moment in Unix milliseconds, rounded down to the granularity, or to a minute
    /// without granularity. `None` means since the beginning.
    pub from_ms: Option<i64>,
    /// The moment after the last one in Unix milliseconds, rounded up in the same way. `None` means
    /// until now.
    pub to_ms: Option<i64>,
    /// Only usage of the key with this name.
    pub key: Option<String>,
    /// Only usage of this model.
    pub model: Option<String>,
    /// True to return a sum for each key.
    pub by_key: bool,
    /// True to return a sum for each model.
    pub by_model: bool,
    /// The length of the intervals that are summed, or `None` for one sum over all.
    ///
    /// Minutes before the moment of [`retain`](crate::AccountingStore::retain) are gone. Without
    /// granularity, usage before that moment counts in the first minute of its quarter of an hour, so
    /// that sums from any full hour of any time zone are exact.
    pub granularity: Option<Granularity>,
}

/// The length of an interval of usage. Days begin at midnight UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// One minute.
    Minute,
    /// One hour.
    Hour,
    /// One day.
    Day,
}

/// A sum of usage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageSum {
    /// The beginning of the interval in Unix milliseconds, if the question has a granularity.
    pub start_ms: Option<i64>,
    /// The name of the key, if the question asks for a sum for each.
    pub key: Option<String>,
    /// The model, if the question asks for a sum for each.
    pub model: Option<String>,
    /// The sums.
    #[serde(flatten)]
    pub totals: Totals,
}

/// The sums themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests of any state.
    pub requests: u64,
    /// Requests that have not ended.
    pub open: u64,
    /// Requests whose process ended before them.
    pub abandoned: u64,
    /// Requests that have ended without a known cost.
    pub unpriced: u64,
    /// Requests whose cost is not exact, because a price was missing.
    pub inexact: u64,
    /// The token counts.
    #[serde(flatten)]
    pub tokens: TokenCounts,
    /// Pictures.
    pub pictures: u64,
    /// The cost of the requests that have ended, in billionths.
    pub cost_nanos: i64,
    /// The reservations of open requests, in billionths.
    pub open_nanos: i64,
    /// The reservations of abandoned requests, in billionths.
    pub abandoned_nanos: i64,
}

/// A page of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowQuery {
    /// The first moment in Unix milliseconds.
    pub from_ms: Option<i64>,
    /// The moment after the last one in Unix milliseconds.
    pub to_ms: Option<i64>,
    /// Only rows of the key with this name.
    pub key: Option<String>,
    /// Only rows of this model.
    pub model: Option<String>,
    /// Only rows behind this one: its time and request id.
    pub after: Option<(i64, String)>,
    /// The largest number of rows.
    pub limit: u32,
}

impl Granularity {
    /// Returns the length in milliseconds.
    #[must_use]
    pub const fn millis(self) -> i64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }
}

impl Default for RowQuery {
    fn default() -> Self {
        Self {
            from_ms: None,
            to_ms: None,
            key: None,
            model: None,
            after: None,
            limit: 1000,
        }
    }
}
