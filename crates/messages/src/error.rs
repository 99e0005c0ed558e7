//! Errors in this protocol's shape and words (spec §7, wire-reference §6.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{ApiError, ErrorKind, Object, Problem, Violation, Violations};

/// `{"type": "error", "error": {…}, "request_id": …}`, the body of a failed request.
///
/// The HTTP status beside it is [`status`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// `error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The failure.
    pub error: ErrorDetail,
    /// The request, as its reply's `request-id` header names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl ErrorBody {
    /// The value of `type`.
    pub const KIND: &'static str = "error";

    /// The body that tells `error` of the request `request_id`.
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

/// The inside of an error, in a body and in a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail {
    /// The sort of failure.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// For a person.
    #[serde(default)]
    pub message: String,
    /// More for a machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<ErrorDetails>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What a machine may want to know of an error beyond its type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetails {
    /// The machine-readable name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl From<&ApiError> for ErrorDetail {
    fn from(error: &ApiError) -> Self {
        // Clients look for a code of their own here, and know just this one.
        let told = error.code == "gateway_concurrency_limit";
        let details = ErrorDetails { error_code: Some(error.code.to_owned()), extra: Object::new() };
        Self {
            kind: error_type(error.kind).to_owned(),
            message: sentence(error).to_owned(),
            details: told.then_some(details),
            extra: Object::new(),
        }
    }
}

/// What a person is told: for the failures that the vendor of this protocol has too, in the vendor's words.
fn sentence(error: &ApiError) -> &str {
    match (error.code, &error.param) {
        ("invalid_api_key", _) => "invalid x-api-key or bearer token",
        ("insufficient_permissions", None) => "This key has no permission for this model family.",
        ("request_too_large", _) => "Request exceeds the maximum size.",
        ("gateway_concurrency_limit", _) => "Too many parallel requests; reduce parallelism and retry.",
        ("server_error", _) => "Internal server error",
        ("service_unavailable", _) if error.kind == ErrorKind::Overloaded => "Overloaded",
        _ => &error.message,
    }
}

/// The `type` that this protocol has for a sort of failure.
#[must_use]
pub const fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest
        | ErrorKind::MethodNotAllowed
        | ErrorKind::TargetTooLong
        | ErrorKind::UnsupportedMediaType
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

/// The HTTP status that this protocol has for a sort of failure: it has one of its own for overload.
#[must_use]
pub const fn status(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::Overloaded => 529,
        kind => kind.status(),
    }
}

/// The refusal of a request, in the words that clients of this protocol know: `max_tokens: Field required`.
#[must_use]
pub fn refusal(found: Violations) -> ApiError {
    match found.len() {
        0 | 1 => found.into_error(word),
        _ => found.into_error(|violation| word(violation).trim_end_matches('.').to_owned() + "."),
    }
}

/// One finding as `field.path: problem`.
fn word(violation: &Violation) -> String {
    let param = match violation.param.as_str() {
        "" => "body",
        param => param,
    };
    match &violation.problem {
        Problem::Missing => format!("{param}: Field required"),
        Problem::Type { expected, found } => format!("{param}: expected {expected}, but got {found}"),
        Problem::BelowMinimum { minimum, found, .. } => {
            format!("{param}: expected at least {minimum}, but got {found}")
        }
        Problem::AboveMaximum { maximum, found, .. } => format!("{param}: expected at most {maximum}, but got {found}"),
        Problem::EmptyArray => format!("{param}: at least one entry is required"),
        Problem::StringTooLong { maximum, found } => {
            format!("{param}: expected at most {maximum} characters, but got {found}")
        }
        Problem::ArrayTooLong { maximum, found } => {
            format!("{param}: expected at most {maximum} entries, but got {found}")
        }
        Problem::Word { found, accepted } => {
            format!("{param}: expected one of '{}', but got '{found}'", accepted.join("', '"))
        }
        Problem::Name { maximum } => {
            format!("{param}: expected 1 to {maximum} characters of a-z, A-Z, 0-9, underscore and hyphen")
        }
        _ => violation.to_string(),
    }
}
