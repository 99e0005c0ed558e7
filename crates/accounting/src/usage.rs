//! The usage of requests: the entries of the journal, and the row that they make.

use serde::{Deserialize, Serialize};

use crate::tokens::TokenCounts;

/// The largest number of tokens or pictures that a row holds; a larger one is stored as this one, so
/// that sums of millions of rows stay within 64 bits.
pub const MAX_COUNT: u64 = 1 << 40;

/// The largest amount of money that a row holds, in billionths: a million units of the currency.
pub const MAX_NANOS: i64 = 1_000_000_000_000_000;

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// A request was admitted.
    Opened(Opened),
    /// A request has ended.
    Closed(Closed),
}

/// The admission of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The id of the request, unique in the store.
    pub request_id: String,
    /// The time of admission in Unix milliseconds. The request counts in the minute, hour and day
    /// of this time.
    pub at_ms: i64,
    /// The name of the gateway process.
    pub replica: String,
    /// The id of the run of that process, which [`Journal::run`](crate::Journal::run) returns.
    pub run: String,
    /// The name of the key; empty if the gateway needs none.
    pub key: String,
    /// The endpoint.
    pub route: String,
    /// The model that the client named.
    pub model: String,
    /// The tokens reserved.
    pub reserved_tokens: u64,
    /// The money reserved, in billionths.
    pub reserved_nanos: i64,
}

/// The end of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// The id of the request.
    pub request_id: String,
    /// The time of the end in Unix milliseconds.
    pub at_ms: i64,
    /// The outcome as the access log names it.
    pub outcome: String,
    /// The HTTP status of the response.
    pub status: u16,
    /// The target that answered, if any did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The token counts.
    #[serde(flatten)]
    pub tokens: TokenCounts,
    /// Pictures of the output.
    pub pictures: u64,
    /// The cost in billionths, or `None` if the model has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanos: Option<i64>,
    /// The service tier at which the request was processed, unless it is the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// The prices that were missing for an exact cost, with spaces between them, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_prices: Option<String>,
}

/// Entries that a store appends in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The entries in their order.
    pub entries: Vec<Entry>,
    /// The position of the journal after these entries, if they come from one.
    pub shipped: Option<Shipped>,
}

/// A position up to which a journal has been shipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// The run that wrote the journal.
    pub run: String,
    /// The number of bytes of the journal.
    pub offset: u64,
}

/// Everything that is known about one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsageRow {
    /// The id of the request.
    pub request_id: String,
    /// The state of the request.
    pub state: State,
    /// The time in Unix milliseconds by which the request counts: its admission, or its end while
    /// the admission is not known.
    pub at_ms: i64,
    /// The time of the end in Unix milliseconds, unless the request is open or abandoned.
    pub closed_ms: Option<i64>,
    /// The name of the gateway process.
    pub replica: String,
    /// The id of the run of that process.
    pub run: String,
    /// The name of the key.
    pub key: String,
    /// The endpoint.
    pub route: String,
    /// The model that the client named.
    pub model: String,
    /// The tokens reserved at admission.
    pub reserved_tokens: u64,
    /// The money reserved at admission, in billionths.
    pub reserved_nanos: i64,
    /// The outcome; empty until the end.
    pub outcome: String,
    /// The HTTP status; 0 until the end.
    pub status: u16,
    /// The target that answered.
    pub target: Option<String>,
    /// The token counts.
    #[serde(flatten)]
    pub tokens: TokenCounts,
    /// Pictures of the output.
    pub pictures: u64,
    /// The cost in billionths; `None` until the end and if the model has no price.
    pub cost_nanos: Option<i64>,
    /// The service tier at which the request was processed, unless it is the usual one.
    pub service_tier: Option<String>,
    /// The prices that were missing for an exact cost, with spaces between them.
    pub missing_prices: Option<String>,
}

/// The state of a request in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The request has not ended, as far as the store knows.
    Open,
    /// The request has ended.
    Closed,
    /// The process ended before the request. Its reservation stands for its unknown cost.
    Abandoned,
}

/// Returns a number of tokens or pictures as a store holds it.
pub(crate) fn count(value: u64) -> i64 {
    value.min(MAX_COUNT).cast_signed()
}

/// Returns an amount of money as a store holds it.
pub(crate) fn nanos(value: i64) -> i64 {
    value.clamp(-MAX_NANOS, MAX_NANOS)
}

impl From<Opened> for Entry {
    fn from(opened: Opened) -> Self {
        Self::Opened(opened)
    }
}

impl From<Closed> for Entry {
    fn from(closed: Closed) -> Self {
        Self::Closed(closed)
    }
}

impl State {
    /// Returns the name of the state as stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Abandoned => "abandoned",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_names_under_which_they_are_stored() {
        let names = [State::Open, State::Closed, State::Abandoned].map(State::as_str);
        assert_eq!(names, ["open", "closed", "abandoned"]);
    }

    #[test]
    fn counts_and_amounts_are_cut_off_at_their_largest() {
        assert_eq!((count(7), count(u64::MAX)), (7, 1_099_511_627_776));
        assert_eq!(
            (nanos(-7), nanos(i64::MAX), nanos(i64::MIN)),
            (-7, 1_000_000_000_000_000, -1_000_000_000_000_000)
        );
    }
}
