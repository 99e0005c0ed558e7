//! The closed list of error responses, as each protocol encodes them.

use serde_json::{Value, json};
use simulator::Protocol;
use wire::ErrorKind;

use crate::client::Response;

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
    if client == Protocol::Messages {
        &MESSAGES
    } else {
        &OPENAI
    }
}

/// An error response.
pub struct Refusal {
    /// The kind of the failure.
    pub failure: ErrorKind,
    /// The `code` of an OpenAI-style body.
    pub code: &'static str,
    /// The status of the response.
    status: u16,
    /// The `type` in the body.
    word: &'static str,
    /// The message in the body. A `*` stands for any text.
    sentence: &'static str,
}

impl Refusal {
    const fn new(
        failure: ErrorKind,
        code: &'static str,
        status: u16,
        word: &'static str,
        sentence: &'static str,
    ) -> Self {
        Self {
            failure,
            code,
            status,
            word,
            sentence,
        }
    }

    /// Returns true if the response is this error, to the last member of its body.
    pub fn is(&self, client: Protocol, response: &Response) -> bool {
        self.matches(client, response, b"")
    }

    fn matches(&self, client: Protocol, response: &Response, upstream: &[u8]) -> bool {
        let found: Value = serde_json::from_str(response.text()).unwrap_or_default();
        let sentence = found["error"]["message"].as_str().unwrap_or_default();
        response.status == self.status
            && matches(self.sentence, sentence)
            && found == self.body(client, response, &found["error"], upstream)
    }

    /// The complete body. Values that vary are taken from `found`.
    fn body(&self, client: Protocol, response: &Response, found: &Value, upstream: &[u8]) -> Value {
        let word = |name: &str, own| match found[name].as_str() {
            Some(word) if has_word(upstream, word) => json!(word),
            _ => json!(own),
        };
        let mut error = json!({"type": word("type", self.word), "message": found["message"]});
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

/// Returns true if the text matches the pattern, with some text in the place of its `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, end)) = pattern.split_once('*') else {
        return text == pattern;
    };
    text.strip_prefix(start)
        .and_then(|rest| rest.strip_suffix(end))
        .is_some_and(|varies| !varies.is_empty())
}

/// The errors of Responses, Chat Completions and Images.
const OPENAI: [Refusal; 12] = [
    Refusal::new(
        ErrorKind::InvalidRequest,
        "context_length_exceeded",
        400,
        "invalid_request_error",
        "*",
    ),
    Refusal::new(
        ErrorKind::RateLimit,
        "insufficient_quota",
        429,
        "rate_limit_error",
        QUOTA_USED_UP,
    ),
    Refusal::new(
        ErrorKind::InvalidRequest,
        "content_policy_violation",
        400,
        "invalid_request_error",
        "*",
    ),
    Refusal::new(
        ErrorKind::InvalidRequest,
        "invalid_value",
        400,
        "invalid_request_error",
        "*",
    ),
    Refusal::new(
        ErrorKind::TooLarge,
        "request_too_large",
        413,
        "invalid_request_error",
        "*",
    ),
    Refusal::new(
        ErrorKind::RateLimit,
        LIMIT,
        429,
        "rate_limit_error",
        OVER_THE_LIMIT,
    ),
    Refusal::new(
        ErrorKind::RateLimit,
        "rate_limit_exceeded",
        429,
        "rate_limit_error",
        RATE_LIMITED,
    ),
    Refusal::new(
        ErrorKind::Upstream,
        "upstream_error",
        502,
        "server_error",
        BAD_GATEWAY,
    ),
    Refusal::new(
        ErrorKind::Overloaded,
        "service_unavailable",
        503,
        "server_error",
        OVERLOADED,
    ),
    Refusal::new(
        ErrorKind::Unavailable,
        "service_unavailable",
        503,
        "server_error",
        LEFT_ALONE,
    ),
    Refusal::new(
        ErrorKind::Unavailable,
        "service_unavailable",
        503,
        "server_error",
        SHUTTING_DOWN,
    ),
    Refusal::new(
        ErrorKind::UpstreamTimeout,
        "upstream_timeout",
        504,
        "server_error",
        TIMEOUT,
    ),
];
/// The errors of Messages. The types, and 529 for overload only, are the vendor's:
/// <https://docs.anthropic.com/en/api/errors>.
const MESSAGES: [Refusal; 10] = [
    Refusal::new(
        ErrorKind::RateLimit,
        "insufficient_quota",
        429,
        "rate_limit_error",
        QUOTA_USED_UP,
    ),
    Refusal::new(
        ErrorKind::InvalidRequest,
        "invalid_value",
        400,
        "invalid_request_error",
        "*",
    ),
    Refusal::new(
        ErrorKind::TooLarge,
        "request_too_large",
        413,
        "request_too_large",
        TOO_LARGE_OF_MESSAGES,
    ),
    Refusal::new(
        ErrorKind::RateLimit,
        LIMIT,
        429,
        "rate_limit_error",
        OVER_THE_LIMIT_OF_MESSAGES,
    ),
    Refusal::new(
        ErrorKind::RateLimit,
        "rate_limit_exceeded",
        429,
        "rate_limit_error",
        RATE_LIMITED,
    ),
    Refusal::new(
        ErrorKind::Upstream,
        "upstream_error",
        502,
        "api_error",
        BAD_GATEWAY,
    ),
    Refusal::new(
        ErrorKind::Overloaded,
        "service_unavailable",
        529,
        "overloaded_error",
        "Overloaded",
    ),
    Refusal::new(
        ErrorKind::Unavailable,
        "service_unavailable",
        503,
        "overloaded_error",
        LEFT_ALONE,
    ),
    Refusal::new(
        ErrorKind::Unavailable,
        "service_unavailable",
        503,
        "overloaded_error",
        SHUTTING_DOWN,
    ),
    Refusal::new(
        ErrorKind::UpstreamTimeout,
        "upstream_timeout",
        504,
        "timeout_error",
        TIMEOUT,
    ),
];

const LIMIT: &str = "gateway_concurrency_limit";
const TOO_LARGE_OF_MESSAGES: &str = "Request exceeds the maximum size.";
const OVER_THE_LIMIT: &str = "Too many parallel requests; reduce parallelism and try again in 1s.";
const OVER_THE_LIMIT_OF_MESSAGES: &str =
    "Too many parallel requests; reduce parallelism and retry.";
const RATE_LIMITED: &str = "The model takes no more requests just now; try again in *s.";
const QUOTA_USED_UP: &str = "The quota of the model is used up.";
const BAD_GATEWAY: &str = "The upstream returned an invalid reply.";
const OVERLOADED: &str = "The model is overloaded just now.";
/// Of an upstream whose circuit breaker is open.
const LEFT_ALONE: &str = "The model is not available just now.";
const SHUTTING_DOWN: &str = "The service is shutting down.";
const TIMEOUT: &str = "The upstream did not answer in time.";
