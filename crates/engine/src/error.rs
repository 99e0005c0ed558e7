//! How an engine fails, told by whose fault it is.

use thiserror::Error;

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
    /// A fault of ours.
    #[error("internal error: {0}")]
    Internal(String),
}
