//! The outcomes of requests.

use engine::EngineError;
use policy::lifecycle::Abort;
use wire::ApiError;

wire::text_enum! {
    /// The outcome of a request. Exactly one is logged and counted for each request.
    pub enum Outcome {
        /// The response was complete, and was sent to its end.
        Completed = "completed",
        /// The output limit truncated the answer.
        Incomplete = "incomplete",
        /// Refused before the answer started, because the request was at fault.
        Refused = "refused",
        /// Refused by the concurrency limit or for another lack of capacity.
        Shed = "shed",
        /// The upstream failed, or its response was invalid.
        UpstreamError = "upstream_error",
        /// The upstream's stream ended without a terminal event.
        UpstreamTruncated = "upstream_truncated",
        /// The gateway failed.
        Internal = "internal",
        /// A deadline passed.
        Timeout = "timeout",
        /// The client disconnected.
        ClientGone = "client_gone",
        /// The client did not read its response in time.
        SlowReader = "slow_reader",
        /// Aborted by the shutdown.
        Shutdown = "shutdown",
        /// Aborted because the key was revoked.
        Revoked = "revoked",
        /// Aborted because the lease of a quota was lost.
        LeaseLost = "lease_lost",
        /// Aborted by an operator, through the admin API.
        EndedByOperator = "ended_by_operator",
    }
}

impl From<Abort> for Outcome {
    fn from(abort: Abort) -> Self {
        match abort {
            Abort::Shutdown => Self::Shutdown,
            Abort::LeaseLost => Self::LeaseLost,
        }
    }
}

impl Outcome {
    /// The outcome of an answer whose engine failed.
    pub fn of_failure(error: &EngineError) -> Self {
        match error {
            EngineError::ContextLength { .. } | EngineError::Unsupported { .. } => Self::Refused,
            EngineError::Rejected { .. } => Self::Refused,
            EngineError::Busy
            | EngineError::RateLimited { .. }
            | EngineError::Overloaded { .. } => Self::Shed,
            EngineError::Timeout(_) | EngineError::Unanswered(_) => Self::Timeout,
            EngineError::Upstream(_)
            | EngineError::Failed { .. }
            | EngineError::Account { .. }
            | EngineError::Misconfigured(_) => Self::UpstreamError,
            EngineError::Truncated(_) => Self::UpstreamTruncated,
            EngineError::Unavailable(_) => Self::Shed,
            _ => Self::Internal,
        }
    }

    /// The outcome of a request that was answered with an error.
    pub fn of_refusal(error: &ApiError) -> Self {
        match error.kind.status() {
            429 | 503 => Self::Shed,
            408 | 504 => Self::Timeout,
            502 => Self::UpstreamError,
            500.. => Self::Internal,
            _ => Self::Refused,
        }
    }

    /// True if the gateway or a target has failed. A refusal is no failure, and neither is a client
    /// that has left, or whose key was revoked.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Completed | Self::Incomplete | Self::Refused | Self::Shed => false,
            Self::ClientGone | Self::SlowReader | Self::Revoked => false,
            Self::UpstreamError
            | Self::UpstreamTruncated
            | Self::Internal
            | Self::Timeout
            | Self::Shutdown
            | Self::LeaseLost
            | Self::EndedByOperator => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::ErrorKind;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an error of the test alone")]
    fn refusals_are_counted_by_their_status() {
        let outcome =
            |kind| Outcome::of_refusal(&ApiError::new(kind, "not_found", "A message.")).as_str();
        assert_eq!(outcome(ErrorKind::InvalidRequest), "refused");
        assert_eq!(outcome(ErrorKind::Authentication), "refused");
        assert_eq!(outcome(ErrorKind::RequestTimeout), "timeout");
        assert_eq!(outcome(ErrorKind::RateLimit), "shed");
        assert_eq!(outcome(ErrorKind::Internal), "internal");
        assert_eq!(outcome(ErrorKind::Upstream), "upstream_error");
        assert_eq!(outcome(ErrorKind::Unavailable), "shed");
        assert_eq!(outcome(ErrorKind::UpstreamTimeout), "timeout");
    }
}
