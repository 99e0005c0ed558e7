//! The answers that are errors: their statuses, headers and words.

use serde_json::{Map, Value, json};
use wire::ErrorKind;

/// The failures that any operation can have.
pub(super) const COMMON: [ErrorKind; 6] = [
    ErrorKind::InvalidRequest,
    ErrorKind::Authentication,
    ErrorKind::MethodNotAllowed,
    ErrorKind::TargetTooLong,
    ErrorKind::HeadersTooLarge,
    ErrorKind::Internal,
];

/// The further failures of an operation that takes a body and asks an engine.
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

/// The answer to a request that fails so; `error` is the schema of its body, `allow` the one method that is taken.
pub(super) fn response(kind: ErrorKind, error: &Value, allow: &str) -> Value {
    // A head that is too large is refused before it is a request, by the HTTP library and without a body.
    if kind == ErrorKind::HeadersTooLarge {
        return json!({ "description": description(kind) });
    }
    let mut headers = common_headers();
    let special = match kind {
        ErrorKind::Authentication => Some(("WWW-Authenticate", header("WwwAuthenticate"))),
        ErrorKind::MethodNotAllowed => Some(("Allow", allowed(allow))),
        ErrorKind::TooLarge | ErrorKind::Upstream => Some(("x-should-retry", header("ShouldRetry"))),
        ErrorKind::RateLimit | ErrorKind::Unavailable | ErrorKind::Overloaded => {
            if kind != ErrorKind::RateLimit {
                headers.insert("x-should-retry".to_owned(), header("ShouldRetry"));
            }
            headers.insert("retry-after-ms".to_owned(), header("RetryAfterMs"));
            Some(("Retry-After", header("RetryAfter")))
        }
        _ => None,
    };
    headers.extend(special.map(|(name, header)| (name.to_owned(), header)));
    let content = json!({ "application/json": { "schema": error } });
    json!({ "description": description(kind), "headers": headers, "content": content })
}

/// The headers of every answer.
pub(super) fn common_headers() -> Map<String, Value> {
    ["x-request-id", "request-id"].into_iter().map(|name| (name.to_owned(), header("RequestId"))).collect()
}

/// A reference to one of [`headers`].
pub(super) fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

/// The headers that answers share.
pub(super) fn headers() -> Value {
    json!({
        "RequestId": {
            "description": "The id of the request, as the log has it.",
            "required": true,
            "schema": { "type": "string", "pattern": "^req_[0-9A-Za-z]+$" },
        },
        "RetryAfter": {
            "description": "After how many seconds another try makes sense.",
            "required": true,
            "schema": { "type": "integer", "minimum": 1 },
        },
        "RetryAfterMs": {
            "description": "The same in milliseconds, and up to a second more, so that not all try at once.",
            "required": true,
            "schema": { "type": "integer", "minimum": 1000 },
        },
        "ShouldRetry": {
            "description": "Whether another try makes sense.",
            "required": true,
            "schema": { "type": "string", "enum": ["true", "false"] },
        },
        "WwwAuthenticate": {
            "description": "How a key is sent.",
            "required": true,
            "schema": { "type": "string", "const": "Bearer" },
        },
        "Dropped": {
            "description": "Fields of the request that the model cannot be given, separated by commas.",
            "schema": { "type": "string" },
        },
    })
}

fn allowed(method: &str) -> Value {
    json!({
        "description": "The method that the path takes.",
        "required": true,
        "schema": { "type": "string", "const": method },
    })
}

fn description(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest => "The request is wrong: every finding, each with its path.",
        ErrorKind::Authentication => "No key, or one that does not open anything.",
        ErrorKind::Permission => "The key has no right to this family of models, or to this model.",
        ErrorKind::NotFound => "There is no such model, or none that the key may see.",
        ErrorKind::MethodNotAllowed => "The path takes another method.",
        ErrorKind::RequestTimeout => "The request did not arrive in time.",
        ErrorKind::TooLarge => "The body is larger than is taken.",
        ErrorKind::TargetTooLong => "The path and its query are longer than is taken.",
        ErrorKind::UnsupportedMediaType => "The body is of another media type than is taken, or compressed.",
        ErrorKind::RateLimit => "More requests at once, or in a while, than are answered.",
        ErrorKind::Upstream => "The model failed or answered nonsense.",
        ErrorKind::Overloaded => "The model has more to do than it can.",
        ErrorKind::HeadersTooLarge => "The head of the request is larger than is taken.",
        ErrorKind::Unavailable => "Nobody to answer just now.",
        ErrorKind::UpstreamTimeout => "The model did not answer in time.",
        _ => "A fault of the gateway.",
    }
}
