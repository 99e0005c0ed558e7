//! Request failures, the stage at which they happened, and whether failing over is safe.

use engine::EngineError;
use thiserror::Error;

/// A request that has no usable response. Its `Display` is for logs only.
#[derive(Debug, Error)]
#[error("{error}")]
pub struct Failure {
    /// The error.
    pub error: EngineError,
    /// True if another attempt or another target is safe: as far as is known, this one did not start the work.
    pub may_fail_over: bool,
    /// The stage at which the request failed.
    pub stage: Stage,
}

/// The stages of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The circuit breaker is open: nothing was sent.
    Breaker,
    /// DNS lookup and TCP connect.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Sending the request and waiting for the head of the response.
    Head,
}

impl Failure {
    /// A failure before any byte of the request reached a server.
    pub(crate) const fn unsent(stage: Stage, error: EngineError) -> Self {
        Self { error, may_fail_over: true, stage }
    }

    /// A failure after the request was sent: the server may have worked on it.
    pub(crate) const fn unanswered(error: EngineError) -> Self {
        Self { error, may_fail_over: false, stage: Stage::Head }
    }
}
