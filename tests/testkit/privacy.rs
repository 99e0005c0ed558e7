//! Checks that clients and upstreams see only permitted data, under every fault.

use std::collections::BTreeSet;

use simulator::{Protocol, Request};

/// Asserts that an upstream request has the allowed headers and the upstream's key only.
#[track_caller]
pub fn check_request_headers(request: &Request) {
    let protocol = request.protocol();
    let (own, key) = match protocol {
        Some(Protocol::Messages) => (&MESSAGES_REQUEST_HEADERS[..], UPSTREAM_KEY.to_owned()),
        _ => (&KEY_HEADERS[..], format!("Bearer {UPSTREAM_KEY}")),
    };
    let names: BTreeSet<_> = request
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let foreign: Vec<_> = names
        .iter()
        .filter(|name| !REQUEST_HEADERS.contains(name) && !own.contains(name))
        .collect();
    assert!(
        foreign.is_empty(),
        "an upstream of {protocol:?} sees {foreign:?}"
    );
    assert_eq!(
        request.header(own[0]),
        Some(key.as_str()),
        "an upstream's own key"
    );
    assert!(
        !request
            .body
            .windows(CLIENT_KEY.len())
            .any(|window| window == CLIENT_KEY.as_bytes())
    );
}

/// Asserts that a client gets the allowed response headers only, without private data.
#[track_caller]
pub fn check_response_headers(headers: &[(String, String)]) {
    for (name, value) in headers {
        assert_private(name, value);
        assert!(
            RESPONSE_HEADERS.contains(&name.as_str()),
            "header {name}: {value}"
        );
    }
}

/// Asserts that a text contains no secret.
#[track_caller]
pub fn assert_private(place: &str, text: &str) {
    for canary in CANARIES {
        assert!(!text.contains(canary), "{place} has '{canary}': {text}");
    }
}

/// The key of the tests' client, which may use every family of endpoints.
pub const CLIENT_KEY: &str = "sg_test_upstreams_key_00000000000000000";
/// The key that the gateway sends to its upstreams.
pub const UPSTREAM_KEY: &str = "simulator-secret";
/// The client's key in a configuration.
pub(crate) const KEYS: &str = r#"
[[keys]]
name = "tests"
hash = "sha256:557bedf70bab3080de0f497b624b67c6d466ed8ad6a5960d60581b05f186a5b3"
scopes = ["text", "messages", "images"]
"#;

/// Secrets that only their owners may see.
const CANARIES: [&str; 5] = [
    "internal-host-7",
    "org-simulator-secret",
    UPSTREAM_KEY,
    CLIENT_KEY,
    "session=private",
];

/// Headers that every upstream may see.
const REQUEST_HEADERS: [&str; 6] = [
    "accept",
    "accept-encoding",
    "content-length",
    "content-type",
    "host",
    "user-agent",
];
/// Headers that an upstream of Messages may see in addition; the first one has its key.
const MESSAGES_REQUEST_HEADERS: [&str; 3] = ["x-api-key", "anthropic-version", "anthropic-beta"];
/// The same for every other upstream: its key, and a hash of the conversation for xAI.
const KEY_HEADERS: [&str; 2] = ["authorization", "x-grok-conv-id"];
/// Response headers that clients may see.
const RESPONSE_HEADERS: [&str; 14] = [
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
