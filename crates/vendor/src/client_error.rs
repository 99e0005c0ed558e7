//! Converts engine failures to the errors that clients receive.

#![expect(
    clippy::disallowed_methods,
    reason = "each error here has a row in tests/testkit/errors.toml"
)]

use engine::{EngineError, Rejection};
use wire::{ApiError, ContextOverflow, ErrorKind, Reported, Specifics, StreamCode};

/// Returns the error that the client receives. The cause of a failure that is not the caller's
/// fault is only logged.
///
/// This is a function and not a `From`, because both types are from other crates, and the crate of
/// the engines does not know the sentences for clients.
#[must_use]
pub fn api_error(error: &EngineError) -> ApiError {
    let converted = refused(error)
        .or_else(|| not_now(error))
        .unwrap_or_else(|| failed(error));
    match reported(error) {
        Some(words) => named(converted, words.clone(), sentence(error)),
        None => converted,
    }
}

/// Returns the error for a request that is at fault itself.
fn refused(error: &EngineError) -> Option<ApiError> {
    Some(match error {
        EngineError::ContextLength { limit, found } => ApiError::context_length(ContextOverflow {
            prompt: Some(*found),
            limit: Some(*limit),
            output: None,
        }),
        // The client's words for it depend on its protocol, and not on the upstream.
        EngineError::Rejected {
            why: Rejection::ContextLength(overflow),
            param,
            ..
        } => ApiError {
            param: param.clone(),
            ..ApiError::context_length(*overflow)
        },
        EngineError::Unsupported { param, reason } => ApiError {
            param: param.clone(),
            ..ApiError::new(ErrorKind::InvalidRequest, "invalid_value", reason)
        },
        EngineError::Rejected {
            why,
            param,
            message,
            ..
        } => {
            let (kind, code) = rejection(*why);
            let sentence = match why {
                Rejection::ContentPolicy => UNSAFE,
                _ => message,
            };
            ApiError {
                param: param.clone(),
                ..ApiError::new(kind, code, sentence)
            }
        }
        _ => return None,
    })
}

/// Returns the error for a request that may succeed later, when there is less load.
fn not_now(error: &EngineError) -> Option<ApiError> {
    Some(match error {
        EngineError::RateLimited { retry_after, .. } => {
            let seconds = retry_after_secs(*retry_after, 1);
            let sentence = format!("Rate limit reached. Please try again in {seconds}s.");
            ApiError::new(ErrorKind::RateLimit, "rate_limit_exceeded", sentence)
                .with_retry_after(seconds)
        }
        EngineError::Overloaded { retry_after, .. } => {
            ApiError::new(ErrorKind::Overloaded, "service_unavailable", OVERLOADED)
                .with_retry_after(retry_after_secs(*retry_after, 2))
        }
        EngineError::Busy => ApiError::concurrency_limit(),
        EngineError::Unavailable(_) => {
            let sentence = "The model is not available just now.";
            ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence)
                .with_retry_after(2)
        }
        _ => return None,
    })
}

/// Returns the error for a failure of the upstream, of the operator's settings, or of the gateway.
fn failed(error: &EngineError) -> ApiError {
    match error {
        EngineError::Timeout(_) | EngineError::Unanswered(_) => ApiError::new(
            ErrorKind::UpstreamTimeout,
            "upstream_timeout",
            "The upstream did not answer in time.",
        ),
        EngineError::Upstream(_) | EngineError::Truncated(_) | EngineError::Failed { .. } => {
            ApiError::new(ErrorKind::Upstream, "upstream_error", BAD_GATEWAY)
        }
        EngineError::Account {
            quota: Some(code), ..
        } => ApiError {
            code_in_stream: Some(*code),
            ..ApiError::new(ErrorKind::RateLimit, "insufficient_quota", QUOTA_USED_UP)
        },
        // The client cannot help it, and need not know more.
        EngineError::Misconfigured(_) | EngineError::Account { .. } => {
            ApiError::new(ErrorKind::Misconfigured, "upstream_error", BAD_GATEWAY)
        }
        _ => ApiError::server_error(),
    }
}

/// Returns the words by which the upstream has named an error, if it has. A prompt that is too long
/// has one name, by which agents know that they have to shorten it.
fn reported(error: &EngineError) -> Option<&Reported> {
    match error {
        EngineError::Rejected {
            why: Rejection::ContextLength(_),
            ..
        } => None,
        EngineError::Rejected { reported, .. }
        | EngineError::RateLimited { reported, .. }
        | EngineError::Overloaded { reported, .. }
        | EngineError::Failed { reported, .. } => reported.as_deref(),
        _ => None,
    }
}

/// Returns the sentence by which the upstream has reported an error that has another sentence in
/// each protocol.
fn sentence(error: &EngineError) -> Option<String> {
    match error {
        EngineError::Rejected {
            why: Rejection::ContentPolicy,
            message,
            ..
        } => Some(message.clone()),
        _ => None,
    }
}

fn rejection(why: Rejection) -> (ErrorKind, &'static str) {
    match why {
        Rejection::ContextLength(_) => (ErrorKind::InvalidRequest, "context_length_exceeded"),
        Rejection::Invalid | Rejection::Signature => (ErrorKind::InvalidRequest, "invalid_value"),
        Rejection::ContentPolicy => (ErrorKind::InvalidRequest, POLICY),
        Rejection::TooLarge => (ErrorKind::TooLarge, "request_too_large"),
    }
}

/// Adds the words by which the upstream has named an error. Its code also counts within a stream if
/// clients know it there.
fn named(error: ApiError, words: Reported, message: Option<String>) -> ApiError {
    ApiError {
        code_in_stream: words.code.as_deref().and_then(StreamCode::named),
        specifics: Some(Box::new(Specifics::Reported(Reported { message, ..words }))),
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
            StreamCode::InvalidPrompt => AGAINST_POLICY,
            StreamCode::InsufficientQuota | StreamCode::UsageNotIncluded => QUOTA_USED_UP,
            StreamCode::ServerIsOverloaded | StreamCode::SlowDown => OVERLOADED,
        };
        return ApiError::new(error.kind, code.as_str(), sentence);
    }
    if error.code == POLICY {
        let code = StreamCode::InvalidPrompt.as_str();
        return ApiError::new(error.kind, code, AGAINST_POLICY);
    }
    // Messages clients recognize an overload by its type
    // (<https://platform.claude.com/docs/en/build-with-claude/streaming#error-events>). The code stays
    // the common one: Codex does not try again after `server_is_overloaded`.
    if error.kind == ErrorKind::Overloaded {
        let ApiError { code, .. } = ApiError::server_error();
        return ApiError::new(error.kind, code, OVERLOADED);
    }
    if !CODES_IN_STREAM.contains(&error.code) {
        return ApiError::server_error();
    }
    let mut error = error.clone();
    error.forget_reported();
    error.param = None;
    error
}

/// The codes that clients know within a stream. Their messages are the gateway's own.
const CODES_IN_STREAM: &[&str] = &[
    "gateway_concurrency_limit",
    "rate_limit_exceeded",
    "insufficient_quota",
    "context_length_exceeded",
];
/// The code of content against a policy. Within a stream clients know another one for it.
const POLICY: &str = "content_policy_violation";
/// <https://github.com/RanFeng/clipsketch-ai/issues/6>
const UNSAFE: &str = "Your request was rejected as a result of our safety system.";
/// <https://github.com/alan-turing-institute/t0-1/issues/69>
const AGAINST_POLICY: &str = "Invalid prompt: your prompt was flagged as potentially violating \
    our usage policy. Please try again with a different prompt.";
/// <https://github.com/Wei-Shaw/sub2api/issues/6631>
const OVERLOADED: &str = "Our servers are currently overloaded. Please try again later.";
const BAD_GATEWAY: &str = "The upstream returned an invalid reply.";
/// <https://github.com/ChatGPTNextWeb/NextChat/issues/4101>
const QUOTA_USED_UP: &str =
    "You exceeded your current quota, please check your plan and billing details.";
/// The longest `Retry-After` that is sent to clients, in seconds.
const MAX_RETRY_AFTER: u32 = 3600;
