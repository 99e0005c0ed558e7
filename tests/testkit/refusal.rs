//! The closed list of error responses that an upstream or the shutdown can cause, from the table of
//! [all errors](crate::errors).

use std::sync::LazyLock;

use serde_json::{Value, json};
use simulator::Protocol;
use wire::ErrorKind;

use crate::client::Response;
use crate::errors::{ERRORS, Literal};

/// Asserts that a response is an error that an upstream, or the shutdown, can cause for a client of
/// this protocol.
#[track_caller]
pub fn check_refusal(client: Protocol, response: &Response) {
    check_relayed_refusal(client, response, b"");
}

/// As [`check_refusal`], if the upstream uses the client's protocol: its own words for the error may
/// take the place of the listed ones. `upstream` is the body that it sent.
#[track_caller]
pub fn check_relayed_refusal(client: Protocol, response: &Response, upstream: &[u8]) {
    // The concurrency limit does not depend on an upstream.
    let mut listed = refusals(client)
        .iter()
        .filter(|refusal| refusal.code != LIMIT);
    let is_listed = listed.any(|refusal| refusal.matches(client, response, upstream));
    assert!(
        is_listed,
        "{client:?}: {} {} is not of the closed list",
        response.status,
        response.text()
    );
}

/// Returns true if the body of an upstream's response has this word as a value of JSON, at any depth
/// or within a text.
pub fn has_word(upstream: &[u8], word: &str) -> bool {
    let text = String::from_utf8_lossy(upstream);
    let is_value = |(at, _): (usize, &str)| {
        let before = text[..at].trim_end_matches(['"', '\\', ' ']);
        let after = text[at + word.len()..].trim_start_matches(['"', '\\', ' ']);
        before.ends_with(':') && after.starts_with([',', '}'])
    };
    !word.is_empty() && text.match_indices(word).any(is_value)
}

/// All error responses that a client of this protocol may get once its request was accepted.
pub fn refusals(client: Protocol) -> &'static [Refusal] {
    static OPENAI: LazyLock<Vec<Refusal>> = LazyLock::new(|| listed(Protocol::Chat));
    static MESSAGES: LazyLock<Vec<Refusal>> = LazyLock::new(|| listed(Protocol::Messages));
    if client == Protocol::Messages {
        &MESSAGES
    } else {
        &OPENAI
    }
}

fn listed(client: Protocol) -> Vec<Refusal> {
    let refusals = CLASSES.iter().filter_map(|(failure, code, class)| {
        Some(Refusal {
            failure: *failure,
            code,
            literal: ERRORS[*class].response(client)?,
        })
    });
    refusals.collect()
}

/// An error response.
pub struct Refusal {
    /// The kind of the failure.
    pub failure: ErrorKind,
    /// The `code` of an OpenAI-style body.
    pub code: &'static str,
    /// The status of the response, and the members of its body.
    literal: &'static Literal,
}

impl Refusal {
    /// Returns true if the response is this error, to the last member of its body.
    pub fn is(&self, client: Protocol, response: &Response) -> bool {
        self.matches(client, response, b"")
    }

    fn matches(&self, client: Protocol, response: &Response, upstream: &[u8]) -> bool {
        let found: Value = serde_json::from_str(response.text()).unwrap_or_default();
        let sentence = found["error"]["message"].as_str().unwrap_or_default();
        Some(response.status) == self.literal.status
            && self.literal.says(sentence)
            && found == self.body(client, response, &found["error"], upstream)
    }

    /// The complete body. Values that vary are taken from `found`.
    fn body(&self, client: Protocol, response: &Response, found: &Value, upstream: &[u8]) -> Value {
        let word = |name: &str, own: &str| match found[name].as_str() {
            Some(word) if has_word(upstream, word) => json!(word),
            _ => json!(own),
        };
        let mut error =
            json!({"type": word("type", &self.literal.kind), "message": found["message"]});
        if client == Protocol::Messages {
            if self.code == LIMIT {
                error["details"] = json!({"error_code": LIMIT});
            }
            return json!({"type": "error", "error": error, "request_id": response.header("request-id")});
        }
        // An upstream that refuses a request may name the field.
        let is_callers = matches!(
            self.failure,
            ErrorKind::InvalidRequest | ErrorKind::TooLarge
        );
        error["param"] = found["param"].as_str().filter(|_| is_callers).into();
        error["code"] = word("code", self.code);
        json!({"error": error})
    }
}

/// The errors that an upstream or the shutdown can cause, by their kind, their code and the class in
/// the table.
const CLASSES: [(ErrorKind, &str, &str); 14] = [
    (ErrorKind::InvalidRequest, LONG, "prompt_too_long"),
    (
        ErrorKind::InvalidRequest,
        LONG,
        "prompt_and_output_too_long",
    ),
    (ErrorKind::InvalidRequest, LONG, "prompt_of_unknown_length"),
    (
        ErrorKind::RateLimit,
        "insufficient_quota",
        "quota_of_upstream",
    ),
    (
        ErrorKind::InvalidRequest,
        "content_policy_violation",
        "content_policy",
    ),
    (
        ErrorKind::InvalidRequest,
        "invalid_value",
        "refused_by_upstream",
    ),
    (
        ErrorKind::TooLarge,
        "request_too_large",
        "too_large_for_upstream",
    ),
    (ErrorKind::RateLimit, LIMIT, "limit_of_concurrency"),
    (
        ErrorKind::RateLimit,
        "rate_limit_exceeded",
        "rate_of_upstream",
    ),
    (ErrorKind::Upstream, "upstream_error", "upstream"),
    (ErrorKind::Overloaded, "service_unavailable", "overload"),
    (
        ErrorKind::Unavailable,
        "service_unavailable",
        "open_circuit",
    ),
    (
        ErrorKind::Unavailable,
        "service_unavailable",
        "shutting_down",
    ),
    (
        ErrorKind::UpstreamTimeout,
        "upstream_timeout",
        "timeout_of_upstream",
    ),
];
const LONG: &str = "context_length_exceeded";
const LIMIT: &str = "gateway_concurrency_limit";
