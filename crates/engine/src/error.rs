//! How an engine fails, told by whose fault it is.

use thiserror::Error;
use wire::StreamCode;

/// Why there is no answer, or no more of it.
///
/// The `Display` of a caller's fault is for the caller; everything else is for the log alone.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The prompt does not fit the model's context: the caller's.
    #[error("the prompt has {found} tokens, of which the model takes at most {limit}")]
    ContextLength {
        /// Tokens that the model takes.
        limit: u64,
        /// Tokens that there are.
        found: u64,
    },
    /// Something in the request cannot be served: the caller's.
    #[error("{reason}")]
    Unsupported {
        /// The field, as the caller's protocol would name it, when that is known.
        param: Option<String>,
        /// Whole sentences that say what was found and what is accepted.
        reason: String,
    },
    /// The other side refused the request itself: the caller's. What it said is for the caller alone, whose own words
    /// may be in it.
    #[error("the upstream refused {why}")]
    Rejected {
        /// What is wrong with it.
        why: Rejection,
        /// The field, as the upstream named it.
        param: Option<String>,
        /// What the upstream said, with nothing in it that is the operator's own.
        message: String,
    },
    /// The other side takes no more requests in this while.
    #[error("the upstream limits the rate of requests")]
    RateLimited {
        /// Seconds to wait, as it advised.
        retry_after: Option<u32>,
    },
    /// The other side has more to do than it can.
    #[error("the upstream is overloaded")]
    Overloaded {
        /// Seconds to wait, as it advised.
        retry_after: Option<u32>,
    },
    /// The other side gives a reason of its own that clients know by name.
    #[error("the upstream failed: {0}")]
    Named(StreamCode),
    /// More at once than is taken: try again with fewer.
    #[error("more requests at once than the engine takes")]
    Busy,
    /// Nobody to answer just now.
    #[error("the engine is not available: {0}")]
    Unavailable(String),
    /// No answer in time.
    #[error("no answer in time: {0}")]
    Timeout(String),
    /// The other side failed or answered nonsense.
    #[error("the upstream failed: {0}")]
    Upstream(String),
    /// The other side stopped before it said that it was done.
    #[error("the upstream broke off: {0}")]
    Truncated(String),
    /// A fault of ours.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What an upstream found wrong with a request. Its `Display` completes "the upstream refused ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Rejection {
    /// A field or a value.
    #[error("the request")]
    Invalid,
    /// The prompt is longer than the model's context.
    #[error("the length of the prompt")]
    ContextLength,
    /// What it asks for is against a policy.
    #[error("what is asked for")]
    ContentPolicy,
    /// It is larger than is taken.
    #[error("the size of the request")]
    TooLarge,
}
