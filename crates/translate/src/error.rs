//! Converts engine failures to the errors that clients receive.

use std::fmt::Display;

use engine::{EngineError, Rejection};
use wire::{ApiError, ErrorKind, Reported, StreamCode};

/// Returns the error that the client receives. The cause of a failure that is not the caller's
/// fault is only logged.
#[must_use]
pub fn api_error(error: &EngineError) -> ApiError {
    match error {
        EngineError::ContextLength { .. } => {
            let sentence = format!("The prompt is too long: {error}.");
            ApiError::new(
                ErrorKind::InvalidRequest,
                "context_length_exceeded",
                sentence,
            )
        }
        EngineError::Unsupported { param, reason } => {
            let error = ApiError::new(ErrorKind::InvalidRequest, "invalid_value", reason);
            ApiError {
                param: param.clone(),
                ..error
            }
        }
        EngineError::Rejected {
            why,
            param,
            message,
            reported,
        } => {
            let (kind, code) = rejected(*why);
            let error = ApiError {
                param: param.clone(),
                ..ApiError::new(kind, code, message)
            };
            named(error, reported.as_deref())
        }
        EngineError::RateLimited {
            retry_after,
            reported,
        } => {
            let seconds = retry_after_secs(*retry_after, 1);
            let sentence =
                format!("The model takes no more requests just now; try again in {seconds}s.");
            let error = ApiError::new(ErrorKind::RateLimit, "rate_limit_exceeded", sentence);
            named(error.with_retry_after(seconds), reported.as_deref())
        }
        EngineError::Overloaded {
            retry_after,
            reported,
        } => {
            let sentence = "The model is overloaded just now.";
            let seconds = retry_after_secs(*retry_after, 2);
            let error = ApiError::new(ErrorKind::Overloaded, "service_unavailable", sentence);
            named(error.with_retry_after(seconds), reported.as_deref())
        }
        EngineError::Account {
            quota: Some(code), ..
        } => ApiError {
            code_in_stream: Some(*code),
            ..ApiError::new(ErrorKind::RateLimit, "insufficient_quota", QUOTA_USED_UP)
        },
        EngineError::Busy => ApiError::concurrency_limit(),
        EngineError::Unavailable(_) => {
            let sentence = "The model is not available just now.";
            ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence)
                .with_retry_after(2)
        }
        EngineError::Timeout(_) | EngineError::Unanswered(_) => ApiError::new(
            ErrorKind::UpstreamTimeout,
            "upstream_timeout",
            "The upstream did not answer in time.",
        ),
        EngineError::Upstream(_) | EngineError::Truncated(_) => bad_gateway(),
        EngineError::Failed { reported, .. } => named(bad_gateway(), reported.as_deref()),
        // The client cannot help it, and need not know more.
        EngineError::Misconfigured(_) | EngineError::Account { .. } => {
            ApiError::new(ErrorKind::Misconfigured, "upstream_error", BAD_GATEWAY)
        }
        _ => ApiError::server_error(),
    }
}

fn rejected(why: Rejection) -> (ErrorKind, &'static str) {
    match why {
        Rejection::Invalid => (ErrorKind::InvalidRequest, "invalid_value"),
        Rejection::ContextLength => (ErrorKind::InvalidRequest, "context_length_exceeded"),
        Rejection::ContentPolicy => (ErrorKind::InvalidRequest, "content_policy_violation"),
        Rejection::TooLarge => (ErrorKind::TooLarge, "request_too_large"),
    }
}

fn bad_gateway() -> ApiError {
    ApiError::new(ErrorKind::Upstream, "upstream_error", BAD_GATEWAY)
}

/// Adds the words by which the upstream has named an error. Its code also counts within a stream if
/// clients know it there.
fn named(error: ApiError, reported: Option<&Reported>) -> ApiError {
    let code = reported.and_then(|reported| reported.code.as_deref());
    ApiError {
        code_in_stream: code.and_then(StreamCode::named),
        reported: reported.cloned().map(Box::new),
        ..error
    }
}

/// Returns the `Retry-After` of the response, in seconds: the upstream's value or the default,
/// within bounds.
fn retry_after_secs(advised: Option<u32>, default: u32) -> u32 {
    advised.unwrap_or(default).clamp(1, MAX_RETRY_AFTER)
}

/// Returns the error that a client receives within a stream. Clients know only a few codes there,
/// so other codes become `server_error`; messages of an upstream are replaced by the gateway's.
#[must_use]
pub fn in_stream(error: &ApiError) -> ApiError {
    if let Some(code) = error.code_in_stream {
        let sentence = match code {
            StreamCode::InvalidPrompt => PROMPT_REFUSED,
            StreamCode::InsufficientQuota | StreamCode::UsageNotIncluded => QUOTA_USED_UP,
            StreamCode::ServerIsOverloaded | StreamCode::SlowDown => {
                "The model is overloaded just now."
            }
        };
        return ApiError::new(error.kind, code.as_str(), sentence);
    }
    match error.code {
        "gateway_concurrency_limit" | "rate_limit_exceeded" | "insufficient_quota" => ApiError {
            reported: None,
            ..error.clone()
        },
        code @ "context_length_exceeded" => ApiError::new(error.kind, code, PROMPT_TOO_LONG),
        _ => ApiError::server_error(),
    }
}

/// The failure for an event that is not valid in its protocol.
pub(crate) fn malformed(why: impl Display) -> EngineError {
    EngineError::Upstream(format!("malformed event: {why}"))
}

/// The failure for a stream that ends early.
pub(crate) fn truncated() -> EngineError {
    EngineError::Truncated("the stream ended without a terminal event".to_owned())
}

/// The message for a prompt that is too long when the lengths are not known.
pub(crate) const PROMPT_TOO_LONG: &str = "The prompt is longer than the context of the model.";
const BAD_GATEWAY: &str = "The upstream returned an invalid reply.";
const QUOTA_USED_UP: &str = "The quota of the model is used up.";
const PROMPT_REFUSED: &str = "The upstream refused the prompt.";
/// The longest `Retry-After` that is sent to clients, in seconds.
const MAX_RETRY_AFTER: u32 = 3600;
