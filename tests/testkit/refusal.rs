//! The closed list of error responses, as each protocol encodes them.

use serde_json::{Value, json};
use simulator::Protocol;
use wire::ErrorKind;

use crate::client::Response;

/// Asserts that a response is an error that an upstream, or the shutdown, can cause for a client of
/// this protocol.
#[track_caller]
pub fn check_refusal(client: Protocol, response: &Response) {
    // The concurrency limit does not depend on an upstream.
    let mut listed = refusals(client)
        .iter()
        .filter(|refusal| refusal.code != LIMIT);
    let is_listed = listed.any(|refusal| refusal.is(client, response));
    assert!(
        is_listed,
        "{client:?}: {} {} is not of the closed list",
        response.status,
        response.text()
    );
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
        let found: Value = serde_json::from_str(response.text()).unwrap_or_default();
        let sentence = found["error"]["message"].as_str().unwrap_or_default();
        response.status == self.status
            && matches(self.sentence, sentence)
            && found == self.body(client, response, &found["error"])
    }

    /// The complete body. Values that vary are taken from `found`.
    fn body(&self, client: Protocol, response: &Response, found: &Value) -> Value {
        let mut error = json!({"type": self.word, "message": found["message"]});
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
        error["code"] = self.code.into();
        json!({"error": error})
    }
}

/// Returns true if the text is that of the pattern, with some text in the place of its `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, end)) = pattern.split_once('*') else {
        return text == pattern;
    };
    text.strip_prefix(start)
        .and_then(|rest| rest.strip_suffix(end))
        .is_some_and(|varies| !varies.is_empty())
}

/// The errors of Responses, Chat Completions and Images.
const OPENAI: [Refusal; 10] = [
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
const MESSAGES: [Refusal; 9] = [
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
const BAD_GATEWAY: &str = "The upstream returned an invalid reply.";
const OVERLOADED: &str = "The model is overloaded just now.";
/// Of an upstream whose circuit breaker is open.
const LEFT_ALONE: &str = "The model is not available just now.";
const SHUTTING_DOWN: &str = "The service is shutting down.";
const TIMEOUT: &str = "The upstream did not answer in time.";
