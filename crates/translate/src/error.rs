//! From an engine's failure to what a client is told of it.

use engine::EngineError;
use wire::{ApiError, ErrorKind};

/// What the client reads. The cause of a failure that is not the caller's goes to the log alone.
#[must_use]
pub fn api_error(error: &EngineError) -> ApiError {
    match error {
        EngineError::ContextLength { .. } => {
            let sentence = format!("The prompt is too long: {error}.");
            ApiError::new(ErrorKind::InvalidRequest, "context_length_exceeded", sentence)
        }
        EngineError::Unsupported { param, reason } => {
            let error = ApiError::new(ErrorKind::InvalidRequest, "invalid_value", reason);
            ApiError { param: param.clone(), ..error }
        }
        EngineError::Busy => ApiError::concurrency_limit(),
        EngineError::Unavailable(_) => {
            let sentence = "The model is not available just now.";
            ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence).with_retry_after(2)
        }
        EngineError::Timeout(_) => {
            ApiError::new(ErrorKind::UpstreamTimeout, "upstream_timeout", "The model did not answer in time.")
        }
        EngineError::Upstream(_) => {
            ApiError::new(ErrorKind::Upstream, "upstream_error", "The upstream returned an invalid reply.")
        }
        _ => ApiError::server_error(),
    }
}

/// What a client is told once a stream has begun: clients know few codes there (spec §6.1, §7).
#[must_use]
pub(crate) fn in_stream(error: &ApiError) -> ApiError {
    const PASSED: [&str; 3] = ["gateway_concurrency_limit", "context_length_exceeded", "rate_limit_exceeded"];
    if PASSED.contains(&error.code) { error.clone() } else { ApiError::server_error() }
}
