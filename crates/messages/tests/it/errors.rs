//! Errors in the format and wording of this protocol.

use serde_json::{Value, json};
use sluicegate_messages::{
    ErrorBody, Event, Request, Rules, StreamFailure, error_type, refusal, status,
};
use wire::{ApiError, ErrorKind};

/// Each row of the error table names a kind of failure, from which its status and body follow: in
/// the vendor's wording for failures that the vendor reports too, whatever ours is.
#[test]
#[expect(clippy::disallowed_methods, reason = "an error of the test alone")]
fn every_sort_of_failure_has_its_status_and_body() {
    let user = json!([{"role": "user", "content": "Hi."}]);
    let error = |kind, code, ours| ApiError::new(kind, code, ours);
    let failures = [
        (
            "missing max_tokens",
            refused(json!({"model": "m", "messages": user})),
        ),
        (
            "empty messages",
            refused(json!({"model": "m", "max_tokens": 1, "messages": []})),
        ),
        (
            "unknown key",
            error(ErrorKind::Authentication, "invalid_api_key", "ours"),
        ),
        (
            "text key on /v1/messages",
            error(ErrorKind::Permission, "insufficient_permissions", "ours"),
        ),
        (
            "unknown model",
            error(ErrorKind::NotFound, "model_not_found", "model: nope"),
        ),
        (
            "body over the limit",
            error(ErrorKind::TooLarge, "request_too_large", "ours"),
        ),
        (
            "over the concurrency limit",
            error(ErrorKind::RateLimit, "gateway_concurrency_limit", "ours"),
        ),
        (
            "internal error",
            error(ErrorKind::Internal, "server_error", "ours"),
        ),
        (
            "upstream timeout",
            error(
                ErrorKind::UpstreamTimeout,
                "upstream_timeout",
                "The upstream did not answer in time.",
            ),
        ),
        (
            "upstream overloaded",
            error(ErrorKind::Overloaded, "service_unavailable", "ours"),
        ),
    ];
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("fixtures/errors-messages-style.json")).unwrap();
    assert!(
        failures
            .iter()
            .map(|(when, _)| *when)
            .eq(cases.iter().map(|case| case["when"].as_str().unwrap()))
    );
    for ((when, error), case) in failures.iter().zip(cases) {
        assert_eq!(Value::from(status(error.kind)), case["status"], "{when}");
        let body = ErrorBody::new(error, "req_<id>");
        assert_eq!(serde_json::to_value(&body).unwrap(), case["body"], "{when}");
        assert_eq!(
            serde_json::from_value::<ErrorBody>(case["body"].clone()).unwrap(),
            body,
            "{when}"
        );
    }
}

/// Statuses without a row in the error table. Only overload has a status of its own in this
/// protocol.
#[test]
fn kinds_without_a_row_have_the_status_of_http() {
    for (kind, owed) in [
        (ErrorKind::MethodNotAllowed, 405),
        (ErrorKind::RequestTimeout, 408),
        (ErrorKind::TargetTooLong, 414),
        (ErrorKind::UnsupportedMediaType, 415),
        (ErrorKind::UpgradeRequired, 426),
        (ErrorKind::HeadersTooLarge, 431),
        (ErrorKind::Upstream, 502),
        (ErrorKind::Unavailable, 503),
    ] {
        assert_eq!(status(kind), owed, "{kind:?}");
    }
}

/// "Overloaded" is only for servers that are overloaded: an unreachable or stopping server keeps
/// our wording.
#[test]
#[expect(clippy::disallowed_methods, reason = "an error of the test alone")]
fn an_unavailable_server_keeps_our_sentence() {
    let error = ApiError::new(
        ErrorKind::Unavailable,
        "service_unavailable",
        "The service is shutting down.",
    );
    let owed = json!({"type": "overloaded_error", "message": "The service is shutting down."});
    assert_eq!(
        serde_json::to_value(ErrorBody::new(&error, "req_1").error).unwrap(),
        owed
    );
}

#[test]
fn unsupported_error_kinds_map_to_the_nearest_type() {
    for kind in [
        ErrorKind::MethodNotAllowed,
        ErrorKind::TargetTooLong,
        ErrorKind::UnsupportedMediaType,
        ErrorKind::HeadersTooLarge,
    ] {
        assert_eq!(error_type(kind), "invalid_request_error");
    }
    assert_eq!(error_type(ErrorKind::RequestTimeout), "timeout_error");
    assert_eq!(error_type(ErrorKind::Upstream), "api_error");
}

#[test]
fn only_the_concurrency_limit_shows_its_code() {
    let limit = Event::Error(StreamFailure::new((&ApiError::concurrency_limit()).into()));
    assert_eq!(
        limit.data(),
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Too many parallel requests; reduce parallelism and retry.","details":{"error_code":"gateway_concurrency_limit"}}}"#
    );
    let fault = Event::Error(StreamFailure::new((&ApiError::server_error()).into()));
    assert_eq!(
        fault.data(),
        r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#
    );
}

#[test]
fn violations_are_reported_in_the_words_of_this_protocol() {
    assert_eq!(
        error_message(json!({"model": "m", "messages": []})),
        "max_tokens: Field required. messages: at least one message is required."
    );
    assert_eq!(
        error_message(json!({"model": "m", "max_tokens": 1, "messages": []})),
        "messages: at least one message is required"
    );
    let user = json!([{"role": "user", "content": "Hi."}]);
    assert_eq!(
        error_message(json!({"model": "m", "messages": user})),
        "max_tokens: Field required"
    );
    let with = |name: &str, value: Value| {
        let mut body = json!({"model": "m", "max_tokens": 1, "messages": user});
        body[name] = value;
        error_message(body)
    };
    assert_eq!(
        with("max_tokens", json!("1")),
        "max_tokens: Input should be a valid integer"
    );
    assert_eq!(
        with("max_tokens", json!(0)),
        "max_tokens: Input should be greater than or equal to 1"
    );
    assert_eq!(
        with("temperature", json!(1.5)),
        "temperature: Input should be less than or equal to 1"
    );
    assert_eq!(
        with("messages", json!([{"role": "king", "content": ""}])),
        "messages.0.role: Input should be 'user', 'assistant' or 'system'"
    );
    assert_eq!(
        with("tools", json!([{"name": "a b", "input_schema": {}}])),
        "tools.0.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
    );
    assert_eq!(
        with("messages", json!(7)),
        "messages: Input should be a valid list"
    );
}

#[test]
fn a_body_that_is_not_json_is_reported_as_such() {
    let error = refusal(Request::read(b"{").unwrap_err());
    assert_eq!((error.code, error.kind.status()), ("invalid_json", 400));
    assert_eq!(
        error.message,
        "The request body is not valid JSON: line 1 column 1"
    );
}

/// Returns the error message for a body.
fn error_message(body: Value) -> String {
    refused(body).message
}

/// Returns the error for a body.
fn refused(body: Value) -> ApiError {
    let found = Request::read(body.to_string().as_bytes())
        .and_then(|request| request.validate(&Rules::default()));
    refusal(found.unwrap_err())
}
