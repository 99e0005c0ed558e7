//! Parses error bodies of upstreams in all known formats.

use engine::Rejection;
use serde_json::Value;

/// The error that an upstream reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::outbound) struct Complaint {
    pub(super) code: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) param: Option<String>,
    pub(super) message: Option<String>,
}

impl Complaint {
    /// Parses the body of an error response, or an error event. Returns an empty error if it is not
    /// JSON.
    pub(in crate::outbound) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body)
            .map(|value| Self::of(&value))
            .unwrap_or_default()
    }

    /// Parses an error given as an object, as a body that contains the object, or as a string.
    pub(in crate::outbound) fn of(value: &Value) -> Self {
        match value {
            Value::String(message) => Self {
                message: Some(message.clone()),
                ..Self::default()
            },
            // Some upstreams send a list with one error.
            Value::Array(errors) => errors.first().map(Self::of).unwrap_or_default(),
            Value::Object(members) => match members
                .get("error")
                .or_else(|| members.get("response")?.get("error"))
            {
                Some(error @ (Value::String(_) | Value::Object(_))) => Self::of(error),
                _ => Self {
                    code: scalar(value, "code"),
                    kind: scalar(value, "type"),
                    param: scalar(value, "param"),
                    message: scalar(value, "message").or_else(|| detail(value)),
                },
            },
            _ => Self::default(),
        }
    }

    /// Returns the status that the code, else the type, stands for.
    pub(super) fn status(&self) -> Option<u16> {
        [&self.code, &self.kind]
            .into_iter()
            .flatten()
            .find_map(|code| status_of(code))
    }

    /// Returns the reason of a refusal, by the code, else by the message.
    pub(super) fn rejection(&self) -> Rejection {
        let texts = [&self.code, &self.kind, &self.message]
            .map(|text| text.as_deref().unwrap_or("").to_lowercase());
        let [code, kind, message] = &texts;
        let has_code = |markers: &[&str]| {
            markers
                .iter()
                .any(|marker| code.contains(marker) || kind.contains(marker))
        };
        let has_message = |markers: &[&str]| markers.iter().any(|marker| message.contains(marker));
        match () {
            () if has_code(&["context_length", "context_window"]) => Rejection::ContextLength,
            () if has_code(&["content_policy", "content_filter", "moderation"]) => {
                Rejection::ContentPolicy
            }
            () if has_code(&["too_large"]) => Rejection::TooLarge,
            () if has_message(&LONG_PROMPT) => Rejection::ContextLength,
            () if has_message(&AGAINST_POLICY) => Rejection::ContentPolicy,
            () => Rejection::Invalid,
        }
    }
}

/// Returns a member that is a string or a number, as text.
fn scalar(value: &Value, name: &str) -> Option<String> {
    match value.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the reason in the format of FastAPI servers: a string, or a list of locations and
/// messages.
fn detail(value: &Value) -> Option<String> {
    match value.get("detail")? {
        Value::String(detail) => Some(detail.clone()),
        Value::Array(details) => details.first().and_then(|detail| scalar(detail, "msg")),
        _ => None,
    }
}

fn status_of(code: &str) -> Option<u16> {
    let code = code.to_ascii_lowercase();
    if let Ok(status) = code.parse() {
        return (400..600).contains(&status).then_some(status);
    }
    let known = STATUSES.iter().find(|(marker, _)| code.contains(marker));
    known.map(|(_, status)| *status)
}

/// Substrings of codes and types, and the statuses that they stand for. The first match counts.
const STATUSES: [(&str, u16); 19] = [
    ("rate_limit", 429),
    ("concurrency_limit", 429),
    ("overloaded", 503),
    ("slow_down", 503),
    ("unavailable", 503),
    ("timeout", 504),
    ("context_length", 400),
    ("context_window", 400),
    ("content_policy", 400),
    ("content_filter", 400),
    ("too_large", 413),
    ("quota", 402),
    ("billing", 402),
    ("api_key", 401),
    ("authentication", 401),
    ("permission", 403),
    ("not_found", 404),
    ("invalid_", 400),
    ("badrequest", 400),
];

/// Phrases in messages about a prompt that is too long.
const LONG_PROMPT: [&str; 6] = [
    "context length",
    "context window",
    "context_length",
    "prompt is too long",
    "input is too long",
    "maximum number of tokens",
];

/// Phrases in messages about a request that violates a content policy.
const AGAINST_POLICY: [&str; 5] = [
    "content policy",
    "content management policy",
    "content filter",
    "usage policies",
    "safety system",
];
