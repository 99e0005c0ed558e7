//! The data of a request at the ledger: the limits that apply to it, its demand and its usage.

use std::sync::Arc;

use crate::limit::Dimension;
use crate::money::Money;

/// The identity of a limit in its ledger. It stays the same when limits are replaced, and no other
/// limit ever has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitId {
    /// The position in the ledger, which other limits may have had before.
    pub(crate) place: usize,
    /// The number of limits that were set before.
    pub(crate) number: u64,
}

/// A limit that applies to a request, and the scope in which it counts the request.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The limit.
    pub limit: LimitId,
    /// The scope, such as the name of the API key; empty if the limit has only one.
    pub scope: &'a str,
}

/// The time, in two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds of a monotonic clock, which fills the rates.
    pub monotonic: u64,
    /// Milliseconds since the Unix epoch, which select the window of a budget.
    pub unix_ms: i64,
}

/// The usage that a request may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Tokens of the prompt, as estimated, and of the answer at most.
    pub tokens: u64,
    /// The price of these tokens.
    pub money: Money,
}

/// The usage that a request had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Tokens of the prompt and of the answer.
    pub tokens: u64,
    /// Tokens of the answer alone, from which later demands are estimated; 0 if not known.
    pub answer_tokens: u64,
    /// The price of these tokens.
    pub money: Money,
}

/// The remaining rates after a request was admitted or refused. If several limits apply, the
/// smallest remaining rate counts, for requests and for tokens separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// Requests per minute, if such a limit applies.
    pub requests: Option<Level>,
    /// Tokens per minute, if such a limit applies.
    pub tokens: Option<Level>,
}

/// The reason why a request was not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The name of the limit.
    pub limit: Arc<str>,
    /// The dimension of the limit that has too little left.
    pub dimension: Dimension,
    /// The cap of this dimension, in its unit; a budget cap is in nano-units of money.
    pub cap: u64,
    /// The time after which the same request would fit if no other came, in microseconds. `None` if
    /// that depends on others.
    pub retry_after: Option<u64>,
    /// True if the limit is leased and its store may grant more: send the lease requests, and try
    /// again.
    pub may_wait: bool,
    /// True if the limit is leased and its store did not answer, or is in quarantine: it is not
    /// known whether there is room.
    pub is_degraded: bool,
    /// The remaining rates that apply to the request.
    pub remaining: Remaining,
}

/// The remaining amount of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The limit per minute.
    pub limit: u64,
    /// The units that can be used at once.
    pub remaining: u64,
    /// The time until nothing of the limit is used, in microseconds.
    pub reset: u64,
}

impl Remaining {
    /// Returns the smaller of both rates, for requests and for tokens separately.
    pub(crate) fn min(self, other: Self) -> Self {
        let smaller = |one: Option<Level>, two: Option<Level>| match (one, two) {
            (Some(one), Some(two)) if two.remaining < one.remaining => Some(two),
            (one, two) => one.or(two),
        };
        Self {
            requests: smaller(self.requests, other.requests),
            tokens: smaller(self.tokens, other.tokens),
        }
    }
}
