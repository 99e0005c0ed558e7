//! The columns of rows of usage.

use std::sync::LazyLock;

use crate::tokens::TokenCounts;

/// The columns of a row, in the order in which rows are read.
pub(super) static OF_ROW: LazyLock<String> = LazyLock::new(|| {
    let (admission, end) = (OF_ADMISSION.join(", "), OF_END.join(", "));
    format!("request_id, state, at_ms, closed_ms, {admission}, {end}")
});

/// The columns that the admission of a request sets, beside its time and state.
pub(super) const OF_ADMISSION: [&str; 7] = [
    "replica",
    "run",
    "key",
    "route",
    "model",
    "reserved_tokens",
    "reserved_nanos",
];

/// The columns that the end of a request sets, beside its time and state.
pub(super) static OF_END: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let before = ["outcome", "status", "target"];
    let after = ["pictures", "cost_nanos", "service_tier", "missing_prices"];
    before
        .into_iter()
        .chain(TokenCounts::COLUMNS)
        .chain(after)
        .collect()
});

/// The place of the first of [`OF_END`] in a row.
const END: usize = 4 + OF_ADMISSION.len();
/// The place of the first token count in a row.
pub(super) const TOKENS: usize = END + 3;
/// The place of the first column behind the token counts.
pub(super) const AFTER_TOKENS: usize = TOKENS + TokenCounts::COLUMNS.len();

/// Returns the assignments by which an upsert gives these columns of a row that is there their new
/// values.
pub(super) fn updates(columns: &[&str]) -> String {
    let updates: Vec<_> = columns
        .iter()
        .map(|column| format!("{column} = excluded.{column}"))
        .collect();
    updates.join(", ")
}
