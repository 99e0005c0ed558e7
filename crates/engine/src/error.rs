//! Errors of engines, classified by who is at fault.

use thiserror::Error;
use wire::{Reported, StreamCode};

/// An error that prevents or ends a response.
///
/// Errors caused by the client are reported to it; the `Display` of all others is only logged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The prompt exceeds the model's context. Caused by the client.
    #[error("the prompt has {found} tokens, of which the model takes at most {limit}")]
    ContextLength {
        /// Maximum number of tokens.
        limit: u64,
        /// Number of tokens in the prompt.
        found: u64,
    },
    /// The request uses something that is not supported. Caused by the client.
    #[error("{reason}")]
    Unsupported {
        /// The field, named as in the client's protocol, if known.
        param: Option<String>,
        /// Complete sentences that state what was found and what is accepted.
        reason: String,
    },
    /// The upstream rejected the request. Caused by the client. The upstream's message may contain
    /// client data, so it is returned to the client but not logged.
    #[error("the upstream rejected the request: {why}")]
    Rejected {
        /// The reason for the rejection.
        why: Rejection,
        /// The field, as named by the upstream.
        param: Option<String>,
        /// The upstream's message, with anything private to the operator removed.
        message: String,
        /// The words by which the upstream has named the error.
        reported: Option<Box<Reported>>,
    },
    /// The upstream's rate limit is exceeded.
    #[error("upstream rate limit exceeded")]
    RateLimited {
        /// Seconds to wait, as advised by the upstream.
        retry_after: Option<u32>,
        /// The words by which the upstream has named the error.
        reported: Option<Box<Reported>>,
    },
    /// The upstream is overloaded.
    #[error("the upstream is overloaded")]
    Overloaded {
        /// Seconds to wait, as advised by the upstream.
        retry_after: Option<u32>,
        /// The words by which the upstream has named the error.
        reported: Option<Box<Reported>>,
    },
    /// The operator's account at the upstream is disabled, in arrears, or has used up its quota.
    /// Waiting does not help, and clients need not know more than that.
    #[error("the upstream failed: {cause}")]
    Account {
        /// The code of the error if clients know it: the upstream has reported a used-up quota as
        /// one.
        quota: Option<StreamCode>,
        /// The description for the log.
        cause: String,
    },
    /// The upstream failed, and has named its failure.
    #[error("the upstream failed: {cause}")]
    Failed {
        /// The description for the log.
        cause: String,
        /// The words by which the upstream has named the error.
        reported: Option<Box<Reported>>,
    },
    /// The engine's concurrency limit is reached; the client may retry with fewer parallel
    /// requests.
    #[error("concurrency limit of the engine reached")]
    Busy,
    /// No engine or upstream is available.
    #[error("engine unavailable: {0}")]
    Unavailable(String),
    /// The engine or upstream did not respond in time.
    #[error("timeout: {0}")]
    Timeout(String),
    /// The upstream has the request and did not respond in time. It may still work on it.
    #[error("timeout: {0}")]
    Unanswered(String),
    /// The upstream failed or sent an invalid response.
    #[error("the upstream failed: {0}")]
    Upstream(String),
    /// The upstream rejected the gateway's own key, or does not know the model or the path. Caused
    /// by the operator; it does not pass by itself.
    #[error("the upstream failed: {0}")]
    Misconfigured(String),
    /// The upstream's response ended before it was complete.
    #[error("the upstream response was truncated: {0}")]
    Truncated(String),
    /// An internal error of the gateway or the engine.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The reason why an upstream rejected a request. `Display` completes "the upstream rejected the
/// request: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Rejection {
    /// An invalid field or value.
    #[error("invalid request")]
    Invalid,
    /// The prompt exceeds the model's context.
    #[error("context length exceeded")]
    ContextLength,
    /// The request violates a content policy.
    #[error("content policy violation")]
    ContentPolicy,
    /// The request exceeds a size limit.
    #[error("request too large")]
    TooLarge,
}
