//! Why there is no answer, and what may be done about it.

use engine::EngineError;
use thiserror::Error;

/// Why there is no answer. Its text is for the log alone.
#[derive(Debug, Error)]
#[error("{error}")]
pub struct Failure {
    /// What to say of it.
    pub error: EngineError,
    /// Whether another try or another target may be asked: the request was not begun here, so far as can be known.
    pub may_fail_over: bool,
    /// How far it came.
    pub stage: Stage,
}

/// The way of a request to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The breaker lets nobody through.
    Breaker,
    /// Finding the host and connecting to it.
    Connect,
    /// ImageGeneration the connection a safe one.
    Tls,
    /// Sending the request, and waiting for the head of its answer.
    Head,
    /// The status that was answered.
    Status,
    /// The body of the answer.
    Body,
}

impl Failure {
    /// The request did not reach anybody.
    pub(crate) const fn unsent(stage: Stage, error: EngineError) -> Self {
        Self { error, may_fail_over: true, stage }
    }

    /// The request is out; what became of it is not known.
    pub(crate) const fn unanswered(error: EngineError) -> Self {
        Self { error, may_fail_over: false, stage: Stage::Head }
    }
}
