//! Errors of engines, classified by who is at fault.

use thiserror::Error;
use wire::{ContextOverflow, Reported, StreamCode};

/// An error that prevents or ends a response.
///
/// Errors caused by the client are reported to it; the `Display` of all others is only logged.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The prompt exceeds the context of the embedded model. The client is at fault: it has to send
    /// a shorter prompt, or to choose a model with a longer context.
    #[error("the prompt has {found} tokens, of which the model takes at most {limit}")]
    ContextLength {
        /// Maximum number of tokens.
        limit: u64,
        /// Number of tokens in the prompt.
        found: u64,
    },
    /// The request uses something that the model, its engine or the protocol of its upstream does
    /// not support. The client is at fault: it has to change the request as the reason says.
    #[error("{reason}")]
    Unsupported {
        /// The field, named as in the client's protocol, if known.
        param: Option<String>,
        /// Complete sentences that state what was found and what is accepted.
        reason: String,
    },
    /// The upstream rejected the request. The client is at fault: it has to change the request as
    /// the upstream's message says. The message may contain client data, so it is returned to the
    /// client but not logged.
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
    /// The upstream refused the request because its rate limit is exceeded. The load is at fault:
    /// the client may retry later, and the operator may raise the limit at the upstream or add a
    /// target.
    #[error("upstream rate limit exceeded")]
    RateLimited {
        /// Seconds to wait, as advised by the upstream.
        retry_after: Option<u32>,
        /// The words by which the upstream has named the error.
        reported: Option<Box<Reported>>,
    },
    /// The upstream is overloaded, or the gateway has no memory left for another long event of a
    /// stream. The load is at fault: the client may retry later, and the operator may add a target.
    #[error("the upstream is overloaded")]
    Overloaded {
        /// Seconds to wait, as advised by the upstream.
        retry_after: Option<u32>,
        /// The words by which the upstream has named the error.
        reported: Option<Box<Reported>>,
    },
    /// The operator's account at the upstream is disabled, in arrears, or has used up its quota.
    /// The operator is at fault and has to settle it with the vendor: waiting does not help, and
    /// clients need not know more than that.
    #[error("the upstream failed: {cause}")]
    Account {
        /// The code of the error if clients know it: the upstream has reported a used-up quota as
        /// one.
        quota: Option<StreamCode>,
        /// The description for the log.
        cause: String,
    },
    /// The upstream failed, and has named its failure. The upstream is at fault: another target may
    /// answer, or the same one later.
    #[error("the upstream failed: {cause}")]
    Failed {
        /// The description for the log.
        cause: String,
        /// The words by which the upstream has named the error.
        reported: Option<Box<Reported>>,
    },
    /// The embedded engine runs and queues as many requests as its settings permit. The load is at
    /// fault: the client may retry with fewer parallel requests, and the operator may raise the
    /// limits.
    #[error("concurrency limit of the engine reached")]
    Busy,
    /// The request was not sent because the circuit breaker of the upstream is open, or the
    /// embedded engine is stopping. The upstream is at fault for the failures that opened the
    /// circuit breaker, and nobody for a stop: another target may answer, or the same one later.
    #[error("engine unavailable: {0}")]
    Unavailable(String),
    /// Connecting to the upstream, generating in the embedded engine or fetching the images of a
    /// reply took too long, or the upstream has reported a timeout. The upstream, the network or
    /// the load is at fault: another target may answer, or the same one later.
    #[error("timeout: {0}")]
    Timeout(String),
    /// The upstream has the request and did not respond in time. The upstream or the network is at
    /// fault, and the upstream may still work on the request and charge for it.
    #[error("timeout: {0}")]
    Unanswered(String),
    /// The upstream failed, could not be reached or sent an invalid response. The upstream or the
    /// network is at fault, or its address in the configuration: the cause in the log
    /// says which, and another target may answer.
    #[error("the upstream failed: {0}")]
    Upstream(String),
    /// The upstream rejected the gateway's own key, or does not know the model or the path. The
    /// operator is at fault and has to correct the configuration: it does not pass by itself.
    #[error("the upstream failed: {0}")]
    Misconfigured(String),
    /// The upstream's response ended before it was complete. The upstream or the network is at
    /// fault: the client may retry.
    #[error("the upstream response was truncated: {0}")]
    Truncated(String),
    /// The gateway or the embedded engine failed by itself. A defect of either is at fault, or a
    /// lack of resources of the machine: the operator finds the cause in the log, and may report
    /// it.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The reason why an upstream rejected a request. `Display` completes "the upstream rejected the
/// request: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Rejection {
    /// A field or value is invalid. The client is at fault and has to correct it.
    #[error("invalid request")]
    Invalid,
    /// The prompt exceeds the context of the upstream's model. The client is at fault: it has to
    /// send a shorter prompt, or to choose a model with a longer context.
    #[error("context length exceeded")]
    ContextLength(ContextOverflow),
    /// The request violates a content policy of the upstream. The client is at fault and has to
    /// change the content.
    #[error("content policy violation")]
    ContentPolicy,
    /// The request exceeds a size limit of the upstream. The client is at fault and has to send a
    /// smaller one.
    #[error("request too large")]
    TooLarge,
    /// Earlier reasoning in the request lacks the signature or the encrypted content by which the
    /// upstream recognizes its own, or has one of another server. A change of the server within the
    /// conversation is at fault.
    #[error("signature of reasoning refused")]
    Signature,
}

impl EngineError {
    /// Returns true if another target may answer the same request: the request itself is not at
    /// fault, or its target has a limit or a check that others may not have.
    #[must_use]
    pub fn may_succeed_elsewhere(&self) -> bool {
        match self {
            Self::Rejected { why, .. } => match why {
                Rejection::Invalid | Rejection::ContentPolicy => false,
                Rejection::ContextLength(_) | Rejection::TooLarge | Rejection::Signature => true,
            },
            Self::Unsupported { .. } => false,
            _ => true,
        }
    }
}
