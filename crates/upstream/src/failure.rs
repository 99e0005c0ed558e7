//! The failure of one attempt to send a request.

use engine::EngineError;

use crate::breaker::Outcome;

/// An attempt that got no usable response.
pub(crate) struct Failure {
    pub(crate) error: EngineError,
    /// True if a retry is safe: as far as is known, the host did not start the work.
    pub(crate) may_retry: bool,
    /// True if the connection closed without a byte of a response, as an idle one does that the
    /// host has closed.
    pub(crate) closed_silently: bool,
    /// The outcome for the circuit breaker.
    pub(crate) outcome: Outcome,
}

impl Failure {
    /// A failure before any byte of the request reached a host.
    pub(crate) const fn unsent(error: EngineError) -> Self {
        Self {
            error,
            may_retry: true,
            closed_silently: false,
            outcome: Outcome::Failure,
        }
    }

    /// A failure after the request was sent: the host may have worked on it, and the request may
    /// be the reason.
    pub(crate) const fn unanswered(error: EngineError) -> Self {
        Self {
            error,
            may_retry: false,
            closed_silently: false,
            outcome: Outcome::Unknown,
        }
    }
}
