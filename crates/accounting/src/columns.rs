//! The columns of rows of usage that both kinds of store have.

use std::sync::LazyLock;

use crate::tokens::TokenCounts;

/// The columns of a row, in the order in which rows are read.
pub(crate) static OF_ROW: LazyLock<String> = LazyLock::new(|| {
    let opened = "request_id, state, at_ms, closed_ms, replica, run, key, route, model, \
        reserved_tokens, reserved_nanos";
    format!("{opened}, {}", OF_END.join(", "))
});

/// The columns that the end of a request sets, beside its time and state.
pub(crate) static OF_END: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let before = ["outcome", "status", "target"];
    let after = ["pictures", "cost_nanos", "service_tier", "missing_prices"];
    before
        .into_iter()
        .chain(TokenCounts::COLUMNS)
        .chain(after)
        .collect()
});

/// The place of the first of [`OF_END`] in a row.
pub(crate) const END: usize = 11;
/// The place of the first token count in a row.
pub(crate) const TOKENS: usize = END + 3;
/// The place of the first column behind the token counts.
pub(crate) const AFTER_TOKENS: usize = TOKENS + TokenCounts::COLUMNS.len();

/// Returns the assignments by which the end of a request updates a row that is there.
pub(crate) fn updates() -> String {
    let updates: Vec<_> = OF_END
        .iter()
        .map(|column| format!("{column} = excluded.{column}"))
        .collect();
    updates.join(", ")
}
