//! Error responses: their statuses, headers and descriptions.

use serde_json::{Map, Value, json};
use wire::ErrorKind;

/// The failures of every operation.
pub(super) const COMMON: [ErrorKind; 6] = [
    ErrorKind::InvalidRequest,
    ErrorKind::Authentication,
    ErrorKind::MethodNotAllowed,
    ErrorKind::TargetTooLong,
    ErrorKind::HeadersTooLarge,
    ErrorKind::Internal,
];

/// The additional failures of operations that have a request body and use an engine.
pub(super) const OF_ENGINES: [ErrorKind; 9] = [
    ErrorKind::Permission,
    ErrorKind::NotFound,
    ErrorKind::RequestTimeout,
    ErrorKind::TooLarge,
    ErrorKind::UnsupportedMediaType,
    ErrorKind::RateLimit,
    ErrorKind::Unavailable,
    ErrorKind::Upstream,
    ErrorKind::UpstreamTimeout,
];

/// The additional failures of operations on a response that an upstream may keep.
pub(super) const OF_RESPONSES: [ErrorKind; 6] = [
    ErrorKind::Permission,
    ErrorKind::NotFound,
    ErrorKind::RateLimit,
    ErrorKind::Unavailable,
    ErrorKind::Upstream,
    ErrorKind::UpstreamTimeout,
];

/// Returns the response of a failure. `error` is the schema of its body, `allow` the methods that
/// the path supports.
pub(super) fn response(kind: ErrorKind, error: &Value, allow: &str) -> Value {
    // The HTTP library refuses headers that are too large before there is a request, and sends no
    // body.
    if kind == ErrorKind::HeadersTooLarge {
        return json!({ "description": description(kind) });
    }
    let shared: &[_] = match kind {
        ErrorKind::Authentication => &[("WWW-Authenticate", "WwwAuthenticate")],
        ErrorKind::TooLarge | ErrorKind::Upstream => &[SHOULD_RETRY],
        ErrorKind::UnsupportedMediaType => &[("Accept-Encoding", "AcceptEncoding")],
        ErrorKind::RateLimit => &[RETRY_AFTER_MS, RETRY_AFTER],
        ErrorKind::Unavailable | ErrorKind::Overloaded => {
            &[SHOULD_RETRY, RETRY_AFTER_MS, RETRY_AFTER]
        }
        _ => &[],
    };
    let mut headers = common_headers();
    headers.extend(
        shared
            .iter()
            .map(|(name, definition)| ((*name).to_owned(), header(definition))),
    );
    let own = match kind {
        ErrorKind::MethodNotAllowed => {
            Some(("Allow", "The methods that the path supports.", allow))
        }
        ErrorKind::UpgradeRequired => Some(("Upgrade", "The supported protocol.", "HTTP/1.1")),
        _ => None,
    };
    if let Some((name, description, value)) = own {
        headers.insert(name.to_owned(), constant(description, value));
    }
    let content = json!({ "application/json": { "schema": error } });
    json!({ "description": description(kind), "headers": headers, "content": content })
}

/// Returns the headers that every response has.
pub(super) fn common_headers() -> Map<String, Value> {
    ["x-request-id", "request-id"]
        .into_iter()
        .map(|name| (name.to_owned(), header("RequestId")))
        .collect()
}

/// Returns a reference to one of [`headers`].
pub(super) fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

/// Returns the definitions of the shared headers.
pub(super) fn headers() -> Value {
    json!({
        "RequestId": {
            "description": "The id of the request, which is also in the log.",
            "required": true,
            "schema": { "type": "string", "pattern": "^req_[0-9A-Za-z]+$" },
        },
        "RetryAfter": {
            "description": "The number of seconds to wait before retrying.",
            "required": true,
            "schema": { "type": "integer", "minimum": 1 },
        },
        "RetryAfterMs": {
            "description": "The milliseconds to wait before retrying: `Retry-After` plus up to one second of jitter.",
            "required": true,
            "schema": { "type": "integer", "minimum": 1000 },
        },
        "ShouldRetry": {
            "description": "Whether a retry may succeed.",
            "required": true,
            "schema": { "type": "string", "enum": ["true", "false"] },
        },
        "WwwAuthenticate": {
            "description": "The authentication scheme for API keys.",
            "required": true,
            "schema": { "type": "string", "const": "Bearer" },
        },
        "AcceptEncoding": {
            "description": "The supported content codings, if the coding of the body is not one of them.",
            "schema": { "type": "string", "const": "zstd, gzip, deflate, identity" },
        },
        "Dropped": {
            "description": "Request fields that were dropped, as the model does not support them; separated by commas.",
            "schema": { "type": "string" },
        },
    })
}

fn constant(description: &str, value: &str) -> Value {
    json!({
        "description": description,
        "required": true,
        "schema": { "type": "string", "const": value },
    })
}

fn description(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest => {
            "The request is invalid. Every error is reported with its path."
        }
        ErrorKind::Authentication => "The API key is missing or invalid.",
        ErrorKind::Permission => {
            "The API key has no permission for this family of models or for this model."
        }
        ErrorKind::NotFound => "The model does not exist, or the API key may not use it.",
        ErrorKind::MethodNotAllowed => "The path does not support this method.",
        ErrorKind::RequestTimeout => "The request was not received in time.",
        ErrorKind::TooLarge => "The request body is too large.",
        ErrorKind::TargetTooLong => "The request target is too long.",
        ErrorKind::UnsupportedMediaType => {
            "The media type or the content coding of the body is not supported."
        }
        ErrorKind::UpgradeRequired => "The request asks for a WebSocket.",
        ErrorKind::RateLimit => {
            "Too many concurrent requests, or the rate limit of the model is exceeded."
        }
        ErrorKind::Upstream => "The model failed or returned an invalid response.",
        ErrorKind::Overloaded => "The model is overloaded.",
        ErrorKind::HeadersTooLarge => "The request headers are too large.",
        ErrorKind::Unavailable => "The service or the model is temporarily unavailable.",
        ErrorKind::UpstreamTimeout => "The model did not respond in time.",
        _ => "An internal error of the gateway.",
    }
}

/// Headers and the names of their definitions.
const SHOULD_RETRY: (&str, &str) = ("x-should-retry", "ShouldRetry");
const RETRY_AFTER: (&str, &str) = ("Retry-After", "RetryAfter");
const RETRY_AFTER_MS: (&str, &str) = ("retry-after-ms", "RetryAfterMs");
