//! What an upstream says of its failure, in whichever shape.

use engine::Rejection;
use serde_json::Value;

/// What an upstream says of its failure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::outbound) struct Complaint {
    pub(super) code: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) param: Option<String>,
    pub(super) message: Option<String>,
}

impl Complaint {
    /// Reads the body of an error, or an error event. What is no JSON says nothing.
    pub(in crate::outbound) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).map(|value| Self::of(&value)).unwrap_or_default()
    }

    /// Reads an error: its object, that of a body around it, or its text alone.
    pub(in crate::outbound) fn of(value: &Value) -> Self {
        match value {
            Value::String(message) => Self { message: Some(message.clone()), ..Self::default() },
            // Some upstreams answer a list of one.
            Value::Array(errors) => errors.first().map(Self::of).unwrap_or_default(),
            Value::Object(members) => match members.get("error") {
                Some(error @ (Value::String(_) | Value::Object(_))) => Self::of(error),
                _ => Self {
                    code: word(value, "code"),
                    kind: word(value, "type"),
                    param: word(value, "param"),
                    message: word(value, "message").or_else(|| detail(value)),
                },
            },
            _ => Self::default(),
        }
    }

    /// The status that the code names, else the type.
    pub(super) fn status(&self) -> Option<u16> {
        [&self.code, &self.kind].into_iter().flatten().find_map(|word| status_of(word))
    }

    /// What is wrong with a request that was refused: told by the code, else by the message.
    pub(super) fn rejection(&self) -> Rejection {
        let words = [&self.code, &self.kind, &self.message].map(|word| word.as_deref().unwrap_or("").to_lowercase());
        let [code, kind, message] = &words;
        let coded = |signs: &[&str]| signs.iter().any(|sign| code.contains(sign) || kind.contains(sign));
        let said = |signs: &[&str]| signs.iter().any(|sign| message.contains(sign));
        match () {
            () if coded(&["context_length", "context_window"]) => Rejection::ContextLength,
            () if coded(&["content_policy", "content_filter", "moderation"]) => Rejection::ContentPolicy,
            () if coded(&["too_large"]) => Rejection::TooLarge,
            () if said(&LONG_PROMPT) => Rejection::ContextLength,
            () if said(&AGAINST_POLICY) => Rejection::ContentPolicy,
            () => Rejection::Invalid,
        }
    }
}

/// A member that is a word or a number.
fn word(value: &Value, name: &str) -> Option<String> {
    match value.get(name)? {
        Value::String(word) => Some(word.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The reason as some Python servers give it: text, or a list of places and reasons.
fn detail(value: &Value) -> Option<String> {
    match value.get("detail")? {
        Value::String(detail) => Some(detail.clone()),
        Value::Array(details) => details.first().and_then(|detail| word(detail, "msg")),
        _ => None,
    }
}

fn status_of(word: &str) -> Option<u16> {
    let word = word.to_ascii_lowercase();
    if let Ok(status) = word.parse() {
        return (400..600).contains(&status).then_some(status);
    }
    let named = STATUSES.iter().find(|(sign, _)| word.contains(sign));
    named.map(|(_, status)| *status)
}

/// What a code or a type has in it, and the status that it stands for. The first that fits counts.
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

/// What upstreams say of a prompt that is too long.
const LONG_PROMPT: [&str; 6] = [
    "context length",
    "context window",
    "context_length",
    "prompt is too long",
    "input is too long",
    "maximum number of tokens",
];

/// What upstreams say of a request that is against their rules.
const AGAINST_POLICY: [&str; 5] =
    ["content policy", "content management policy", "content filter", "usage policies", "safety system"];
