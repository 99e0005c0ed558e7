//! What must hold whatever goes wrong: what clients and upstreams may see, and the closed list of failures.

use std::collections::BTreeSet;

use serde_json::Value;
use simulator::{Protocol, Request};

/// An upstream sees the headers that are its business and its own key.
#[track_caller]
pub(crate) fn check_headers(request: &Request) {
    let names: BTreeSet<_> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
    let foreign: Vec<_> = names.iter().filter(|name| !SENT.contains(name)).collect();
    assert!(foreign.is_empty(), "an upstream sees {foreign:?}");
    let (name, key) = match request.protocol() {
        Some(Protocol::Messages) => ("x-api-key", UPSTREAM_KEY.to_owned()),
        _ => ("authorization", format!("Bearer {UPSTREAM_KEY}")),
    };
    assert_eq!(request.header(name), Some(key.as_str()), "an upstream's own key");
    assert!(!request.body.windows(CLIENT_KEY.len()).any(|window| window == CLIENT_KEY.as_bytes()));
}

/// A client sees these headers alone, and nothing private in them.
#[track_caller]
pub(crate) fn check_told(headers: &[(String, String)]) {
    for (name, value) in headers {
        assert_private(name, value);
        assert!(TOLD.contains(&name.as_str()), "header {name}: {value}");
    }
}

/// Nothing in a text is somebody's secret.
#[track_caller]
pub(crate) fn assert_private(place: &str, text: &str) {
    for canary in CANARIES {
        assert!(!text.contains(canary), "{place} has '{canary}': {text}");
    }
}

/// A failure told by its status is of the closed list.
#[track_caller]
pub(crate) fn check_refusal(status: u16, body: &str) {
    let told: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {status} {body}"));
    let code = told["error"]["code"].as_str().or(told["error"]["type"].as_str());
    let pair = (status, code.unwrap_or_else(|| panic!("no code: {told}")));
    assert!(REFUSALS.contains(&pair), "{pair:?} is not of the closed list");
}

/// The key of the tests' client, which opens every family.
pub(crate) const CLIENT_KEY: &str = "sg_test_upstreams_key_00000000000000000";
/// What the gateway shows its upstreams.
pub(crate) const UPSTREAM_KEY: &str = "simulator-secret";
/// The client's key in a configuration.
pub(crate) const KEYS: &str = r#"
[[keys]]
name = "tests"
hash = "sha256:557bedf70bab3080de0f497b624b67c6d466ed8ad6a5960d60581b05f186a5b3"
scopes = ["text", "messages", "images"]
"#;

/// What nobody but its owner may see.
pub(crate) const CANARIES: [&str; 5] =
    ["internal-host-7", "org-simulator-secret", UPSTREAM_KEY, CLIENT_KEY, "session=private"];

/// Every status and code that an upstream can bring about, and for Messages every type.
const REFUSALS: [(u16, &str); 14] = [
    (400, "invalid_value"),
    (400, "invalid_request_error"),
    (413, "request_too_large"),
    (429, "rate_limit_exceeded"),
    (429, "rate_limit_error"),
    (500, "api_error"),
    (502, "upstream_error"),
    (502, "api_error"),
    (503, "service_unavailable"),
    (503, "overloaded_error"),
    (504, "upstream_timeout"),
    (504, "timeout_error"),
    (529, "overloaded_error"),
    (500, "server_error"),
];
/// What upstreams may see.
const SENT: [&str; 9] = [
    "accept",
    "accept-encoding",
    "anthropic-version",
    "authorization",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-api-key",
];
/// What clients may see.
const TOLD: [&str; 14] = [
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "transfer-encoding",
    "x-accel-buffering",
    "x-content-type-options",
    "x-request-id",
    "x-should-retry",
    "x-sluicegate-dropped",
];
