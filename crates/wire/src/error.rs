//! The error type of the gateway, and its OpenAI-style response body.

#![expect(
    clippy::disallowed_methods,
    reason = "each error here has a row in tests/testkit/errors.toml"
)]

use std::fmt;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Code, ContextOverflow};

crate::objects!(ErrorBody, ErrorDetail);

/// The family of protocols whose forms of errors and headers a client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `{"error": {…}}`, see <https://platform.openai.com/docs/guides/error-codes>.
    OpenAi,
    /// `{"type": "error", "error": {…}, "request_id": …}`, see
    /// <https://docs.anthropic.com/en/api/errors>.
    Messages,
}

/// The kind of an error. It determines the HTTP status and the `type` in the response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 400: the request is invalid.
    InvalidRequest,
    /// 401: no API key, or an invalid one.
    Authentication,
    /// 403: a valid API key without the required permission.
    Permission,
    /// 404: unknown path or model.
    NotFound,
    /// 405: the path does not support the method.
    MethodNotAllowed,
    /// 408: the request was not received in time.
    RequestTimeout,
    /// 413: the body exceeds the size limit.
    TooLarge,
    /// 414: the request target exceeds the length limit.
    TargetTooLong,
    /// 415: unsupported media type or content coding of the body.
    UnsupportedMediaType,
    /// 426: the path does not support the protocol that the request asks to upgrade to.
    UpgradeRequired,
    /// 429: concurrency or rate limit exceeded.
    RateLimit,
    /// 431: the request headers exceed the size limit.
    HeadersTooLarge,
    /// 500: internal error of the gateway.
    Internal,
    /// 502: the upstream failed or sent an invalid response.
    Upstream,
    /// 502: the upstream rejected the gateway's own key or configuration, so that a retry cannot
    /// succeed.
    Misconfigured,
    /// 503: no engine or upstream is available.
    Unavailable,
    /// 503, in the Messages protocol 529: the upstream is overloaded.
    Overloaded,
    /// 504: the upstream did not respond in time.
    UpstreamTimeout,
}

impl ErrorKind {
    /// Returns the HTTP status.
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
            Self::UpgradeRequired => 426,
            Self::RateLimit => 429,
            Self::HeadersTooLarge => 431,
            Self::Internal => 500,
            Self::Upstream | Self::Misconfigured => 502,
            Self::Unavailable | Self::Overloaded => 503,
            Self::UpstreamTimeout => 504,
        }
    }

    /// Returns the `type` of an OpenAI-style error body.
    #[must_use]
    pub const fn openai_type(self) -> &'static str {
        match self {
            // OpenAI has no type of its own for keys:
            // <https://github.com/chatanywhere/GPT_API_free/issues/62>.
            Self::InvalidRequest
            | Self::Authentication
            | Self::Permission
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::TooLarge
            | Self::TargetTooLong
            | Self::UnsupportedMediaType
            | Self::UpgradeRequired
            | Self::HeadersTooLarge => "invalid_request_error",
            Self::RequestTimeout => "timeout_error",
            Self::RateLimit => "rate_limit_error",
            Self::Internal
            | Self::Upstream
            | Self::Misconfigured
            | Self::Unavailable
            | Self::Overloaded
            | Self::UpstreamTimeout => "server_error",
        }
    }
}

/// An error as reported to the client. Details of the cause are only logged.
///
/// Each protocol renders it as an HTTP response body, or as a stream event once the response has
/// started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The machine-readable error code, one of [`Code`].
    pub code: &'static str,
    /// The error code to use within a started stream, where clients expect a different one.
    pub code_in_stream: Option<StreamCode>,
    /// One or more complete sentences for a person.
    pub message: String,
    /// The path of the invalid field.
    pub param: Option<String>,
    /// Seconds to wait before a retry.
    pub retry_after: Option<NonZeroU32>,
    /// The code, the type or the message in each protocol, where it differs.
    pub specifics: Option<Box<Specifics>>,
}

/// The code, the type or the message of an error in one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Specifics {
    /// The words by which the upstream has named the error, for a client of the upstream's
    /// protocol. They take the place of `code` and of the `type` in the response body.
    Reported(Reported),
    /// The limit that the request exceeds counts tokens, and not requests.
    Tokens,
    /// The sizes of a request that exceeds the context of its model. Each protocol has a sentence of
    /// its own for them, which `message` is for OpenAI's protocols.
    Overflow(ContextOverflow),
    /// The sentence of Anthropic for the error; `message` is OpenAI's.
    Anthropic(&'static str),
}

/// The words by which an upstream has named an error, as far as clients may see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// The error code.
    pub code: Option<String>,
    /// The error type.
    pub kind: Option<String>,
    /// The sentence, for an error that has another sentence in each protocol.
    pub message: Option<String>,
}

impl ApiError {
    /// Creates an error with a kind, a [code](Code) and a message.
    #[must_use]
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        debug_assert!(Code::named(code).is_some(), "{code}");
        Self {
            kind,
            code,
            code_in_stream: None,
            message: message.into(),
            param: None,
            retry_after: None,
            specifics: None,
        }
    }

    /// Sets the path of the invalid field.
    #[must_use]
    pub fn with_param(self, param: impl Into<String>) -> Self {
        Self {
            param: Some(param.into()),
            ..self
        }
    }

    /// Sets the number of seconds to wait before a retry, at least 1.
    #[must_use]
    pub fn with_retry_after(self, seconds: u32) -> Self {
        Self {
            retry_after: NonZeroU32::new(seconds.max(1)),
            ..self
        }
    }

    /// Sets the sentence of the Messages protocol, where the vendors' sentences differ.
    #[must_use]
    pub fn with_anthropic_sentence(self, sentence: &'static str) -> Self {
        Self {
            specifics: Some(Box::new(Specifics::Anthropic(sentence))),
            ..self
        }
    }

    /// Creates the error for requests over the gateway's concurrency limit.
    #[must_use]
    pub fn concurrency_limit() -> Self {
        let message = "Too many parallel requests; reduce parallelism and try again in 1s.";
        Self::new(ErrorKind::RateLimit, "gateway_concurrency_limit", message).with_retry_after(1)
    }

    /// Creates the error for a request that exceeds the context of its model, in the words by which
    /// agents recognize it.
    #[must_use]
    pub fn context_length(overflow: ContextOverflow) -> Self {
        Self {
            specifics: Some(Box::new(Specifics::Overflow(overflow))),
            ..Self::new(
                ErrorKind::InvalidRequest,
                "context_length_exceeded",
                overflow.openai_sentence(),
            )
        }
    }

    /// Creates a generic server error. Within a started stream it also stands for upstream
    /// failures, since clients know only this code there.
    #[must_use]
    pub fn server_error() -> Self {
        let message = "The server had an error while processing your request. Sorry about that!";
        Self::new(ErrorKind::Internal, "server_error", message)
    }

    /// Returns the error body of Responses, Chat Completions, Images and the model list.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            error: ErrorDetail {
                message: self.reported_message().unwrap_or(&self.message).to_owned(),
                kind: self.kind_or(self.openai_type()).to_owned(),
                param: self.param.clone(),
                code: Some(self.code_or(self.code).to_owned()),
            },
        }
    }

    /// Returns the `type` of an OpenAI-style error body. OpenAI names the limit that is exceeded
    /// (<https://github.com/openai/codex/issues/88>,
    /// <https://github.com/ChatGPTNextWeb/NextChat/issues/4101>).
    #[must_use]
    pub fn openai_type(&self) -> &'static str {
        match (self.code, self.specifics.as_deref()) {
            ("rate_limit_exceeded", Some(Specifics::Tokens)) => "tokens",
            ("rate_limit_exceeded", _) => "requests",
            ("insufficient_quota", _) => "insufficient_quota",
            _ => self.kind.openai_type(),
        }
    }

    /// Returns the sizes of the request, if it exceeds the context of its model.
    #[must_use]
    pub fn overflow(&self) -> Option<ContextOverflow> {
        match self.specifics.as_deref() {
            Some(Specifics::Overflow(overflow)) => Some(*overflow),
            _ => None,
        }
    }

    /// Returns the sentence of the Messages protocol, if it differs from `message`.
    #[must_use]
    pub fn anthropic_sentence(&self) -> Option<&'static str> {
        match self.specifics.as_deref() {
            Some(Specifics::Anthropic(sentence)) => Some(sentence),
            _ => None,
        }
    }

    /// Removes the words by which the upstream has named the error.
    pub fn forget_reported(&mut self) {
        self.specifics
            .take_if(|specifics| matches!(**specifics, Specifics::Reported(_)));
    }

    fn reported(&self) -> Option<&Reported> {
        match self.specifics.as_deref() {
            Some(Specifics::Reported(reported)) => Some(reported),
            _ => None,
        }
    }

    /// Returns the sentence by which the upstream has reported the error, if the client gets that.
    #[must_use]
    pub fn reported_message(&self) -> Option<&str> {
        self.reported()?.message.as_deref()
    }

    /// Returns the error type that the upstream has reported, or else `own`.
    #[must_use]
    pub fn kind_or<'a>(&'a self, own: &'a str) -> &'a str {
        self.reported()
            .and_then(|reported| reported.kind.as_deref())
            .unwrap_or(own)
    }

    /// Returns the error code that the upstream has reported, or else `own`.
    fn code_or<'a>(&'a self, own: &'a str) -> &'a str {
        self.reported()
            .and_then(|reported| reported.code.as_deref())
            .unwrap_or(own)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

crate::text_enum! {
    /// Error codes of upstream failures that clients recognize only within a stream.
    pub enum StreamCode {
        /// The quota of the operator's upstream account is exhausted.
        InsufficientQuota = "insufficient_quota",
        /// The operator's upstream account does not include the requested usage.
        UsageNotIncluded = "usage_not_included",
        /// The upstream rejected the prompt.
        InvalidPrompt = "invalid_prompt",
        /// The upstream is overloaded.
        ServerIsOverloaded = "server_is_overloaded",
        /// The upstream asks for a lower request rate.
        SlowDown = "slow_down",
    }
}

/// The OpenAI-style error body, `{"error": {…}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

impl fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.message)
    }
}

/// The error object of an OpenAI-style error body. All four keys are always written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct ErrorDetail {
    /// A description for a person.
    #[serde(default)]
    pub message: String,
    /// The kind of error.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The path of the invalid field.
    #[serde(default)]
    pub param: Option<String>,
    /// The machine-readable error code.
    #[serde(default)]
    pub code: Option<String>,
}
