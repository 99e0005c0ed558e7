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

/// Returns the message for the client, in the vendor's wording for failures that the vendor reports
/// too.
fn client_message(error: &ApiError) -> Cow<'_, str> {
    if let Some(overflow) = error.overflow() {
        return overflow.anthropic_sentence().into();
    }
    let sentence = match (error.code, &error.param) {
        ("invalid_api_key", _) => "invalid x-api-key or bearer token",
        ("insufficient_permissions", None) => "This key has no permission for this model family.",
        ("request_too_large", _) => "Request exceeds the maximum size.",
        ("gateway_concurrency_limit", _) => {
            "Too many parallel requests; reduce parallelism and retry."
        }
        // Within a stream its code is the common one.
        ("service_unavailable" | "server_error", _) if error.kind == ErrorKind::Overloaded => {
            "Overloaded"
        }
        ("server_error", _) => "Internal server error",
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
    let param = match violation.param.as_str() {
        "" => "body",
        param => param,
    };
    match &violation.problem {
        Problem::Missing => format!("{param}: Field required"),
        Problem::Type { expected, found } => {
            format!("{param}: expected {expected}, but got {found}")
        }
        Problem::Range { limit, found, .. } => {
            let side = if found < limit { "least" } else { "most" };
            format!("{param}: expected at {side} {limit}, but got {found}")
        }
        Problem::EmptyArray => format!("{param}: at least one entry is required"),
        Problem::StringTooLong { maximum, found } => {
            format!("{param}: expected at most {maximum} characters, but got {found}")
        }
        Problem::ArrayTooLong { maximum, found } => {
            format!("{param}: expected at most {maximum} entries, but got {found}")
        }
        Problem::Word { found, accepted } => {
            format!(
                "{param}: expected one of '{}', but got '{found}'",
                accepted.join("', '")
            )
        }
        Problem::Name { maximum } => {
            format!(
                "{param}: expected 1 to {maximum} characters of a-z, A-Z, 0-9, underscore and hyphen"
            )
        }
        _ => violation.to_string(),
    }
}
