//! The one error of the gateway, and the shape in which OpenAI-style clients read it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::objects!(ErrorBody, ErrorDetail);

/// What sort of failure: it decides the HTTP status and the `type` of the body (wire-reference §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 400: the request itself is wrong.
    InvalidRequest,
    /// 401: no key, or one that does not open anything.
    Authentication,
    /// 403: a good key without this right.
    Permission,
    /// 404: no such path or model.
    NotFound,
    /// 405: the path exists, the method does not.
    MethodNotAllowed,
    /// 408: the request did not arrive in time.
    RequestTimeout,
    /// 413: more bytes than are taken.
    TooLarge,
    /// 414: a request target over its limit.
    TargetTooLong,
    /// 415: a body of another media type or coding.
    UnsupportedMediaType,
    /// 429: too many at once, or too many in a while.
    RateLimit,
    /// 431: a request head over its limit.
    HeadersTooLarge,
    /// 500: a fault of ours.
    Internal,
    /// 502: the target failed or answered nonsense.
    Upstream,
    /// 503: nobody to answer just now.
    Unavailable,
    /// 503, of Messages 529: the target has more to do than it can.
    Overloaded,
    /// 504: the target did not answer in time.
    UpstreamTimeout,
}

impl ErrorKind {
    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Authentication => 401,
            Self::Permission => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::TooLarge => 413,
            Self::TargetTooLong => 414,
            Self::UnsupportedMediaType => 415,
            Self::RateLimit => 429,
            Self::HeadersTooLarge => 431,
            Self::Internal => 500,
            Self::Upstream => 502,
            Self::Unavailable | Self::Overloaded => 503,
            Self::UpstreamTimeout => 504,
        }
    }

    /// The `type` of an OpenAI-style error body (wire-reference §6.1).
    #[must_use]
    pub const fn openai_type(self) -> &'static str {
        match self {
            Self::InvalidRequest
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::TooLarge
            | Self::TargetTooLong
            | Self::UnsupportedMediaType
            | Self::HeadersTooLarge => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::RequestTimeout => "timeout_error",
            Self::RateLimit => "rate_limit_error",
            Self::Internal | Self::Upstream | Self::Unavailable | Self::Overloaded | Self::UpstreamTimeout => {
                "server_error"
            }
        }
    }
}

/// A failure as a client is told it. The cause, if there is more to say, goes to the log alone.
///
/// Each protocol renders it: as an HTTP body before the first byte, as an event after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// What sort of failure.
    pub kind: ErrorKind,
    /// The machine-readable name, from the closed list of wire-reference §6.1.
    pub code: &'static str,
    /// The name within a stream that has begun, where clients know the failure by another one (wire-reference §1.9).
    pub code_in_stream: Option<StreamCode>,
    /// One or more whole sentences for a person.
    pub message: String,
    /// The field at fault, as a path.
    pub param: Option<String>,
    /// How many seconds to wait before another try.
    pub retry_after: Option<u32>,
}

impl ApiError {
    /// An error of `kind`, named `code`, told as `message`.
    #[must_use]
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code, code_in_stream: None, message: message.into(), param: None, retry_after: None }
    }

    /// The same error, laid to the field `param`.
    #[must_use]
    pub fn with_param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// The same error, with the advice to wait so many seconds.
    #[must_use]
    pub fn with_retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// More requests at once than the gateway takes (spec §7, §8.1).
    #[must_use]
    pub fn concurrency_limit() -> Self {
        let message = "Too many parallel requests; reduce parallelism and try again in 1s.";
        Self::new(ErrorKind::RateLimit, "gateway_concurrency_limit", message).with_retry_after(1)
    }

    /// A fault of ours, or of a target, once the stream has begun: clients know just this code (spec §7).
    #[must_use]
    pub fn server_error() -> Self {
        let message = "The server had an error while processing the request.";
        Self::new(ErrorKind::Internal, "server_error", message)
    }

    /// The body that Responses, Chat Completions, Images and the model list answer with.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            error: ErrorDetail {
                message: self.message.clone(),
                kind: self.kind.openai_type().to_owned(),
                param: self.param.clone(),
                code: Some(self.code.to_owned()),
            },
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// A name that failures of an upstream have within a stream alone, where clients know them (wire-reference §1.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamCode {
    /// The operator's account there is used up.
    InsufficientQuota,
    /// The operator's account there does not include this.
    UsageNotIncluded,
    /// It does not take the prompt.
    InvalidPrompt,
    /// It has more to do than it can.
    ServerIsOverloaded,
    /// It asks for fewer requests.
    SlowDown,
}

impl StreamCode {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [
            Self::InsufficientQuota,
            Self::UsageNotIncluded,
            Self::InvalidPrompt,
            Self::ServerIsOverloaded,
            Self::SlowDown,
        ];
        all.into_iter().find(|code| code.as_str() == name)
    }

    /// The name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InsufficientQuota => "insufficient_quota",
            Self::UsageNotIncluded => "usage_not_included",
            Self::InvalidPrompt => "invalid_prompt",
            Self::ServerIsOverloaded => "server_is_overloaded",
            Self::SlowDown => "slow_down",
        }
    }
}

impl fmt::Display for StreamCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `{"error": {…}}`, the OpenAI-style error body (wire-reference §6.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct ErrorBody {
    /// The failure.
    pub error: ErrorDetail,
}

/// The inside of an OpenAI-style error body. All four keys are always written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct ErrorDetail {
    /// For a person.
    #[serde(default)]
    pub message: String,
    /// The sort of failure.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The field at fault.
    #[serde(default)]
    pub param: Option<String>,
    /// The machine-readable name.
    #[serde(default)]
    pub code: Option<String>,
}
