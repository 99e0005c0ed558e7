//! Errors in the format and wording of this protocol. See
//! <https://docs.anthropic.com/en/api/errors>.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{ApiError, ErrorKind, Object, Problem, Violation, Violations};

/// The body of a failed request: `{"type": "error", "error": {…}, "request_id": …}`.
///
/// The HTTP status that belongs to it is [`status`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ErrorBody {
    /// The type, `error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The error.
    pub error: ErrorDetail,
    /// The request id, as in the `request-id` response header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

impl ErrorBody {
    /// The value of `type`.
    pub const KIND: &'static str = "error";

    /// Creates the body for `error` in the response to the request `request_id`.
    #[must_use]
    pub fn new(error: &ApiError, request_id: &str) -> Self {
        Self {
            kind: Self::KIND.to_owned(),
            error: error.into(),
            request_id: Some(request_id.to_owned()),
            extra: Object::new(),
        }
    }
}

wire::open_structs! {
    /// The error object, in a body and in a stream.
    pub struct ErrorDetail {
        /// The error type.
        #[serde(rename = "type", default)]
        pub kind: String,
        /// Human-readable description.
        #[serde(default)]
        pub message: String,
        /// Machine-readable details.
        pub details: Option<ErrorDetails>,
    }

    /// Machine-readable details of an error.
    #[derive(Default)]
    pub struct ErrorDetails {
        /// Machine-readable error code.
        pub error_code: Option<String>,
    }
}

impl fmt::Display for ErrorDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<&ApiError> for ErrorDetail {
    fn from(error: &ApiError) -> Self {
        // Clients only recognize this one code here.
        let has_code = error.code == "gateway_concurrency_limit";
        let details = ErrorDetails {
            error_code: Some(error.code.to_owned()),
            extra: Object::new(),
        };
        let detail = Self::new(
            error.kind_or(error_type(error.kind)).to_owned(),
            client_message(error).into_owned(),
        );
        Self {
            details: has_code.then_some(details),
            ..detail
        }
    }
}

/// Returns the message for the client, in the vendor's words for failures that the vendor reports too.
/// Their sources are in `tests/testkit/errors.toml`.
fn client_message(error: &ApiError) -> Cow<'_, str> {
    if let Some(overflow) = error.overflow() {
        return overflow.anthropic_sentence().into();
    }
    if let Some(sentence) = error.reported_message().or(error.anthropic_sentence()) {
        return sentence.into();
    }
    let sentence = match error.code {
        "missing_api_key" => "x-api-key header is required",
        "invalid_api_key" => "invalid x-api-key",
        "insufficient_permissions" if error.param.is_none() => {
            "Your API key does not have permission to use the specified resource."
        }
        "unknown_url" => "Not Found",
        "request_too_large" => "Request exceeds the maximum size",
        "gateway_concurrency_limit" => "Too many parallel requests; reduce parallelism and retry.",
        "rate_limit_exceeded" => {
            "This request would exceed your account's rate limit. Please try again later."
        }
        "content_policy_violation" | "invalid_prompt" => {
            "Output blocked by content filtering policy"
        }
        // Its code is another one within a stream, and the upstream's if clients know that.
        _ if error.kind == ErrorKind::Overloaded => "Overloaded",
        "server_error" => "Internal server error",
        _ => &error.message,
    };
    sentence.into()
}

/// Returns the error `type` of this protocol for a kind of failure.
#[must_use]
pub const fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest
        | ErrorKind::MethodNotAllowed
        | ErrorKind::TargetTooLong
        | ErrorKind::UnsupportedMediaType
        | ErrorKind::UpgradeRequired
        | ErrorKind::HeadersTooLarge => "invalid_request_error",
        ErrorKind::Authentication => "authentication_error",
        ErrorKind::Permission => "permission_error",
        ErrorKind::NotFound => "not_found_error",
        ErrorKind::RequestTimeout | ErrorKind::UpstreamTimeout => "timeout_error",
        ErrorKind::TooLarge => "request_too_large",
        ErrorKind::RateLimit => "rate_limit_error",
        ErrorKind::Unavailable | ErrorKind::Overloaded => "overloaded_error",
        _ => "api_error",
    }
}

/// Returns the HTTP status of this protocol for a kind of failure: 529 for overload, otherwise the
/// usual one.
#[must_use]
pub const fn status(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::Overloaded => 529,
        kind => kind.status(),
    }
}

/// Converts violations to an error in the wording of this protocol, such as `max_tokens: Field
/// required`.
#[must_use]
pub fn refusal(found: Violations) -> ApiError {
    match found.len() {
        0 | 1 => found.into_error(violation_text),
        _ => found.into_error(|violation| {
            violation_text(violation).trim_end_matches('.').to_owned() + "."
        }),
    }
}

/// Formats one violation as `field.path: problem`.
fn violation_text(violation: &Violation) -> String {
    let problem = match &violation.problem {
        Problem::Missing => "Field required".to_owned(),
        Problem::Type { expected, .. } => format!("Input should be {}", valid(expected)),
        Problem::Range { limit, found, .. } => {
            let side = if found < limit { "greater" } else { "less" };
            format!("Input should be {side} than or equal to {limit}")
        }
        Problem::EmptyArray => {
            "List should have at least 1 item after validation, not 0".to_owned()
        }
        Problem::EmptyString => "String should have at least 1 character".to_owned(),
        Problem::StringTooLong { maximum, .. } => {
            format!("String should have at most {maximum} characters")
        }
        Problem::ArrayTooLong { maximum, found } => {
            format!("List should have at most {maximum} items after validation, not {found}")
        }
        Problem::Word { accepted, .. } => {
            format!("Input should be {}", wire::quoted(accepted, " or "))
        }
        Problem::Name { maximum } => {
            format!("String should match pattern '^[a-zA-Z0-9_-]{{1,{maximum}}}$'")
        }
        Problem::NotJson { line, column } => {
            return format!("The request body is not valid JSON: line {line} column {column}");
        }
        _ => return located(violation),
    };
    format!("{}: {problem}", location(&violation.param))
}

/// Returns the sentence of a violation. If it begins with the path, it does so in the spelling of
/// this protocol.
fn located(violation: &Violation) -> String {
    let sentence = violation.to_string();
    let rest = sentence.strip_prefix(&violation.param);
    let rest = rest.filter(|rest| rest.starts_with(':'));
    rest.map_or_else(
        || sentence.clone(),
        |rest| location(&violation.param) + rest,
    )
}

/// Returns a path in the spelling of this protocol: `messages.0.content`.
fn location(param: &str) -> String {
    match param {
        "" => "body".to_owned(),
        param => param.replace('[', ".").replace(']', ""),
    }
}

/// Returns a type in the words of this protocol, whose server is written in Python.
fn valid(expected: &str) -> String {
    let noun = match expected {
        "an object" => "dictionary",
        "an array" | "an array of objects" | "an array of strings" => "list",
        expected => match expected.split_once(' ') {
            Some((_, noun)) if !noun.contains(' ') => noun,
            _ => return expected.to_owned(),
        },
    };
    format!("a valid {noun}")
}
