//! The errors that are sent before an answer has started, in the shape of the client's protocol.

#![expect(
    clippy::disallowed_methods,
    reason = "each error here has a row in tests/testkit/errors.toml"
)]

mod image_input;
mod response_refs;

use coding::DecodeError;
use engine::EngineError;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE,
    WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use policy::clock;
use quota::{Dimension, Refused};
use telemetry::outcome::Outcome;
pub use wire::Style;
use wire::{ApiError, ErrorKind, Specifics};

use crate::exchange::body::{Body, whole};

/// An error response to a request.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The error that the client gets.
    pub error: ApiError,
    /// The accepted alternatives: the methods for `Allow`, or the codings for `Accept-Encoding`.
    pub(crate) accepted: Option<&'static str>,
    /// True if the connection is closed after the response, because the rest of the request is not
    /// waited for or cannot be distinguished from the next one.
    pub(crate) closes: bool,
    /// True if the client has disconnected, so that the response is not sent.
    pub(crate) is_client_gone: bool,
    /// The internal cause, for the log.
    pub(crate) cause: Option<Box<str>>,
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let closes = [
            ErrorKind::TooLarge,
            ErrorKind::RequestTimeout,
            ErrorKind::MethodNotAllowed,
        ]
        .contains(&error.kind);
        Self {
            error,
            accepted: None,
            closes,
            is_client_gone: false,
            cause: None,
        }
    }
}

/// The failure of an engine or upstream, before an answer has started.
impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        Self {
            cause: cause(&error).map(Into::into),
            ..vendor::api_error(&error).into()
        }
    }
}

/// A body is not what its content coding promises, or is too large when it is decoded.
impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::TooLarge => Self::too_large(),
            error => Self::malformed(format!("The request body {error}.")),
        }
    }
}

/// Returns the cause of an engine's failure for the log. An unsupported request has none: its text
/// may quote the client.
pub(crate) fn cause(error: &EngineError) -> Option<String> {
    (!matches!(error, EngineError::Unsupported { .. })).then(|| error.to_string())
}

impl Refusal {
    /// The request failed within the gateway, for this reason, which only the log gets.
    pub(crate) fn internal(cause: impl Into<Box<str>>) -> Self {
        Self {
            cause: Some(cause.into()),
            ..ApiError::server_error().into()
        }
    }

    pub(crate) fn not_found(method: &http::Method, path: &str) -> Self {
        let path = wire::truncate_for_error(path);
        ApiError::new(
            ErrorKind::NotFound,
            "unknown_url",
            format!("Unknown request URL: {method} {path}. Please check the URL for typos."),
        )
        .into()
    }

    /// A method that the path does not have: 405.
    pub fn method(method: &http::Method, path: &str, allow: &'static str) -> Self {
        let sentence = format!("Method {method} is not allowed for {path}.");
        let error = ApiError::new(ErrorKind::MethodNotAllowed, "method_not_allowed", sentence);
        Self {
            accepted: Some(allow),
            ..error.into()
        }
    }

    /// The name of a stream of a WebSocket in another form than [the
    /// guide](https://developers.openai.com/api/docs/guides/websocket-mode) has: 400.
    pub fn stream_id() -> Self {
        let sentence = "The 'stream_id' field must be a non-empty string with at most 256 characters and may \
                        only contain letters, numbers, underscores, hyphens, and periods.";
        let error = ApiError::new(ErrorKind::InvalidRequest, "invalid_stream_id", sentence);
        error.with_param("stream_id").into()
    }

    /// A stream beyond the number that a WebSocket may have: 400.
    pub fn too_many_streams(most: usize) -> Self {
        let sentence = format!(
            "This WebSocket connection has reached its maximum number of distinct stream IDs ({most}). Reuse an \
             existing stream_id or open a new WebSocket connection."
        );
        let code = "websocket_stream_limit_reached";
        let error = ApiError::new(ErrorKind::InvalidRequest, code, sentence);
        error.with_param("stream_id").into()
    }

    /// A WebSocket that is as old as it may become: 400.
    pub fn websocket_too_old(minutes: u64) -> Self {
        let sentence = format!(
            "Responses websocket connection limit reached ({minutes} minutes). Create a new websocket connection to \
             continue."
        );
        let code = "websocket_connection_limit_reached";
        ApiError::new(ErrorKind::InvalidRequest, code, sentence).into()
    }

    /// The request asks for a WebSocket that is not offered, or not in the form of RFC 6455. Clients
    /// that can do without one fall back on this status.
    pub fn websocket() -> Self {
        let sentence =
            "A WebSocket cannot be opened here; send a POST request, with 'stream' for events.";
        ApiError::new(ErrorKind::UpgradeRequired, "upgrade_required", sentence).into()
    }

    /// The request violates the framing of HTTP/1.1. Its end is in doubt, so nothing is read after
    /// it.
    fn malformed(sentence: impl Into<String>) -> Self {
        let error = ApiError::new(ErrorKind::InvalidRequest, "invalid_value", sentence);
        Self {
            closes: true,
            ..error.into()
        }
    }

    /// A transfer coding besides the chunked one: 400.
    pub(crate) fn transfer_coding() -> Self {
        Self::malformed("Transfer-Encoding must be 'chunked' and nothing else.")
    }

    /// No host, several ones, or one in another form than RFC 9112 has: 400.
    pub(crate) fn host() -> Self {
        Self::malformed("There must be one Host header: a name or an address, and at most a port.")
    }

    pub(crate) fn no_path(method: &http::Method) -> Self {
        let sentence = format!("Method {method} is not allowed without a path.");
        let error = ApiError::new(ErrorKind::MethodNotAllowed, "method_not_allowed", sentence);
        Self {
            accepted: Some("GET, POST"),
            ..error.into()
        }
    }

    pub(crate) fn target_too_long() -> Self {
        let sentence = "The path and query of the request are longer than the limit.";
        ApiError::new(ErrorKind::TargetTooLong, "target_too_long", sentence).into()
    }

    /// No API key in the request: 401.
    pub fn missing_key() -> Self {
        let sentence = "You didn't provide an API key. You need to provide your API key in an \
                        Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).";
        ApiError::new(ErrorKind::Authentication, "missing_api_key", sentence).into()
    }

    /// The key is not valid. Unknown, revoked and expired keys are not distinguished.
    pub(crate) fn invalid_key() -> Self {
        ApiError::new(
            ErrorKind::Authentication,
            "invalid_api_key",
            "Incorrect API key provided.",
        )
        .into()
    }

    /// The key lacks the scope of this model family.
    pub(crate) fn capability(family: &str) -> Self {
        let sentence = format!(
            "You have insufficient permissions for this operation. Missing scopes: {family}."
        );
        ApiError::new(ErrorKind::Permission, "insufficient_permissions", sentence).into()
    }

    pub(crate) fn model(id: &str) -> Self {
        let sentence = format!("This key does not have access to model `{id}`.");
        ApiError::new(ErrorKind::Permission, "insufficient_permissions", sentence)
            .with_param("model")
            .into()
    }

    /// A body above the limit: 413.
    pub fn too_large() -> Self {
        ApiError::new(
            ErrorKind::TooLarge,
            "request_too_large",
            "The request body is larger than the limit.",
        )
        .into()
    }

    pub(crate) fn media_type(accepted: &str, found: &str) -> Self {
        let found = wire::truncate_for_error(found);
        let sentence = format!(
            "Unsupported content type: '{found}'. This API method only accepts '{accepted}' requests, \
             but you specified the header 'Content-Type: {found}'. Please try again with a supported \
             content type."
        );
        let code = "unsupported_content_type";
        ApiError::new(ErrorKind::UnsupportedMediaType, code, sentence).into()
    }

    /// The body has another content coding than the accepted ones, or several: 415, with the header
    /// that distinguishes this from a wrong media type (RFC 9110 §15.5.16).
    pub fn content_encoding(accepted: &'static str) -> Self {
        let sentence = format!("Content-Encoding must be one of: {accepted}.");
        let kind = ErrorKind::UnsupportedMediaType;
        Self {
            accepted: Some(accepted),
            ..ApiError::new(kind, "unsupported_media_type", sentence).into()
        }
    }

    pub(crate) fn slow_upload() -> Self {
        let sentence = "The request body did not arrive in time.";
        ApiError::new(ErrorKind::RequestTimeout, "request_timeout", sentence).into()
    }

    /// The body was aborted or violates the framing of HTTP/1.1.
    pub(crate) fn broken_upload() -> Self {
        Self::malformed("The request body could not be read.")
    }

    /// The client disconnected before its body was complete.
    pub(crate) fn client_gone() -> Self {
        Self {
            is_client_gone: true,
            ..Self::broken_upload()
        }
    }

    /// The memory for uploads is exhausted; the log gets the limit.
    pub fn overloaded(limit: &str) -> Self {
        let sentence = "The service is overloaded; try again in 1s.";
        let error = ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence);
        Self {
            cause: Some(limit.into()),
            ..error.with_retry_after(1).into()
        }
    }

    /// The request is aborted before its answer has started.
    pub(crate) fn aborted(outcome: Outcome) -> Self {
        match outcome {
            Outcome::LeaseLost => Self::lease_lost(),
            Outcome::EndedByOperator => Self::ended_by_operator(),
            _ => Self::shutting_down(),
        }
    }

    /// An operator has ended the request. The status is one after which clients do not try again.
    fn ended_by_operator() -> Self {
        let sentence = "An operator of the service has ended this request.";
        ApiError::new(ErrorKind::Permission, "request_ended", sentence).into()
    }

    /// The shutdown aborts the request before the answer has started. Another process may answer
    /// it.
    fn shutting_down() -> Self {
        let sentence = "The service is shutting down.";
        ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence)
            .with_retry_after(2)
            .into()
    }

    /// The lease of a quota was lost, and the request has to end with it.
    fn lease_lost() -> Self {
        Self {
            cause: Some("the lease of a quota was lost".into()),
            ..Self::unchecked_limits().into()
        }
    }

    /// It cannot be known whether the limits of the key have room.
    fn unchecked_limits() -> ApiError {
        let sentence = "The limits of this key cannot be checked just now; try again in 2s.";
        ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence).with_retry_after(2)
    }

    /// A limit has no room for the request.
    pub(crate) fn limit(refused: &Refused) -> Self {
        let Refused {
            limit,
            dimension,
            cap,
            retry_after,
            is_degraded,
            ..
        } = refused;
        if *is_degraded {
            return Self::by_limit(Self::unchecked_limits(), limit);
        }
        let seconds = retry_after.map_or(1, |microseconds| microseconds.div_ceil(1_000_000));
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX).max(1);
        let unit = match dimension {
            Dimension::Concurrency => {
                return Self::by_limit(ApiError::concurrency_limit(), limit);
            }
            Dimension::Budget => {
                let sentence =
                    "You exceeded your current quota, please check your plan and billing details.";
                let error = ApiError::new(ErrorKind::RateLimit, "insufficient_quota", sentence);
                return Self::by_limit(error, limit);
            }
            Dimension::Requests => "requests per min (RPM)",
            Dimension::Tokens => "tokens per min (TPM)",
        };
        let sentence =
            format!("Rate limit reached on {unit}: Limit {cap}. Please try again in {seconds}s.");
        let error = ApiError::new(ErrorKind::RateLimit, "rate_limit_exceeded", sentence);
        let is_tokens = *dimension == Dimension::Tokens;
        let error = ApiError {
            specifics: is_tokens.then(|| Box::new(Specifics::Tokens)),
            ..error.with_retry_after(seconds)
        };
        Self::by_limit(error, limit)
    }

    /// The key has a budget, and the model has no price.
    pub(crate) fn no_price(model: &str) -> Self {
        let sentence =
            format!("The model '{model}' has no price, so that a key with a budget cannot use it.");
        let error = ApiError::new(ErrorKind::Permission, "insufficient_permissions", sentence);
        Self {
            cause: Some("a budget applies, and the model has no price".into()),
            ..error.with_param("model").into()
        }
    }

    /// The admission of the request could not be journaled, without which it is not served.
    pub(crate) fn not_journaled(error: &std::io::Error) -> Self {
        let sentence = "The service is not available just now.";
        let refused = ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence);
        Self {
            cause: Some(format!("the journal of usage cannot be written: {error}").into()),
            ..refused.with_retry_after(5).into()
        }
    }

    /// A refusal by a limit. Only the log gets the limit's name.
    fn by_limit(error: ApiError, limit: &str) -> Self {
        Self {
            cause: Some(format!("limit: {limit}").into()),
            ..error.into()
        }
    }

    /// The request timeout passed without an answer.
    pub(crate) fn timeout() -> Self {
        vendor::api_error(&EngineError::Timeout(String::new())).into()
    }

    /// A model whose embedded engine this build lacks: 503.
    pub fn no_engine() -> Self {
        let sentence = "No engine is configured for this model.";
        ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence)
            .with_retry_after(30)
            .into()
    }

    /// No target of the model counts the tokens of a prompt: 404.
    pub(crate) fn not_countable(model: &str) -> Self {
        let sentence =
            format!("The tokens of a prompt for the model '{model}' cannot be counted ahead.");
        ApiError::new(ErrorKind::NotFound, "not_found", sentence).into()
    }

    /// Returns the response, with all headers but the common ones.
    pub fn into_response(self, style: Style, request_id: &str) -> Response<Body> {
        let kind = self.error.kind;
        let (status, body) = match style {
            Style::OpenAi => (kind.status(), serde_json::to_vec(&self.error.body())),
            Style::Messages => (
                messages::status(kind),
                serde_json::to_vec(&messages::ErrorBody::new(&self.error, request_id)),
            ),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Both bodies consist of strings, which can always be serialized.
        let mut response = Response::new(whole(body.unwrap_or_default().into()));
        *response.status_mut() = status;
        *response.headers_mut() = self.headers();
        response
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.error.retry_after {
            let seconds = seconds.get();
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            headers.insert(
                HeaderName::from_static("retry-after-ms"),
                HeaderValue::from(jittered_ms(seconds)),
            );
        }
        match self.error.kind {
            ErrorKind::Authentication => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // RFC 9110 §15.5.22: the protocol that is supported instead.
            ErrorKind::UpgradeRequired => {
                headers.insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
                headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
                headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            }
            _ => {}
        }
        if let Some(may_help) = retry_may_help(&self.error) {
            let value = if may_help { "true" } else { "false" };
            headers.insert(SHOULD_RETRY, HeaderValue::from_static(value));
        }
        if let Some(accepted) = self.accepted {
            let name = match self.error.kind {
                ErrorKind::UnsupportedMediaType => ACCEPT_ENCODING,
                _ => ALLOW,
            };
            headers.insert(name, HeaderValue::from_static(accepted));
        }
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        headers
    }
}

/// Returns whether waiting may change the cause of an error. `None` if clients conclude that from
/// the status.
fn retry_may_help(error: &ApiError) -> Option<bool> {
    match (error.kind, error.code) {
        (ErrorKind::RateLimit, "insufficient_quota") => Some(false),
        (ErrorKind::TooLarge | ErrorKind::Misconfigured, _) => Some(false),
        (ErrorKind::Upstream | ErrorKind::Overloaded | ErrorKind::Unavailable, _) => Some(true),
        _ => None,
    }
}

/// A header of the official clients: it overrides the retry decision that they derive from the
/// status.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Converts seconds to milliseconds and adds up to a second of jitter, so that clients that are
/// refused together do not retry together. The official clients prefer this to the whole seconds.
fn jittered_ms(seconds: u32) -> u64 {
    let jitter = u64::try_from(clock::random_bits() % 1000).unwrap_or_default();
    u64::from(seconds) * 1000 + jitter
}

#[cfg(test)]
mod tests;
