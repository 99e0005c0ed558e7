//! Every way to say no before an answer has begun, in the shape of the protocol that was spoken.

use bytes::Bytes;
use engine::EngineError;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use wire::{ApiError, ErrorKind};

use crate::clock;

/// In whose shape an error is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `{"error": {…}}` (wire-reference §6.1).
    OpenAi,
    /// `{"type": "error", "error": {…}, "request_id": …}` (wire-reference §6.2).
    Messages,
}

/// A request that gets no answer but an error.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// What the client is told.
    pub(crate) error: ApiError,
    /// The methods that are taken, when the method was wrong.
    pub(crate) allow: Option<Methods>,
    /// Whether the connection ends with it: the rest of the request is not waited for, or cannot be told from the next.
    pub(crate) closes: bool,
    /// Whether the client has left, so that nobody is told.
    pub(crate) is_unheard: bool,
    /// What the log says beyond that.
    pub(crate) cause: Option<String>,
}

/// The methods that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// `GET` on this path.
    Get,
    /// `POST` on this path.
    Post,
    /// Both, on one path or another.
    GetOrPost,
}

impl Methods {
    /// As the header `Allow` has them.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::GetOrPost => "GET, POST",
        }
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let closes =
            [ErrorKind::TooLarge, ErrorKind::RequestTimeout, ErrorKind::MethodNotAllowed].contains(&error.kind);
        Self { error, allow: None, closes, is_unheard: false, cause: None }
    }
}

impl Refusal {
    /// No such path.
    pub(crate) fn not_found(method: &http::Method, path: &str) -> Self {
        let path = wire::echo(path);
        ApiError::new(ErrorKind::NotFound, "not_found", format!("No such path: {method} {path}.")).into()
    }

    /// The path takes other methods.
    pub(crate) fn method(method: &http::Method, path: &str, allow: Methods) -> Self {
        let sentence = format!("Method {method} is not allowed for {path}.");
        let error = ApiError::new(ErrorKind::MethodNotAllowed, "method_not_allowed", sentence);
        Self { allow: Some(allow), ..error.into() }
    }

    /// The request is not framed as HTTP/1.1 asks. Where it ends is in doubt, so nothing is read after it.
    pub(crate) fn malformed(sentence: &'static str) -> Self {
        let error = ApiError::new(ErrorKind::InvalidRequest, "invalid_value", sentence);
        Self { closes: true, ..error.into() }
    }

    /// The request is about no path.
    pub(crate) fn no_path(method: &http::Method) -> Self {
        let sentence = format!("Method {method} is not allowed without a path.");
        let error = ApiError::new(ErrorKind::MethodNotAllowed, "method_not_allowed", sentence);
        Self { allow: Some(Methods::GetOrPost), ..error.into() }
    }

    /// A path and query longer than is taken.
    pub(crate) fn target_too_long() -> Self {
        let sentence = "The path and query of the request are longer than the limit.";
        ApiError::new(ErrorKind::TargetTooLong, "target_too_long", sentence).into()
    }

    /// No key was shown.
    pub(crate) fn missing_key() -> Self {
        let sentence = "No API key was provided. Send it as 'Authorization: Bearer <key>'.";
        ApiError::new(ErrorKind::Authentication, "missing_api_key", sentence).into()
    }

    /// The key shown opens nothing: unknown, revoked and expired ones are not told apart.
    pub(crate) fn invalid_key() -> Self {
        ApiError::new(ErrorKind::Authentication, "invalid_api_key", "The API key is not valid.").into()
    }

    /// The key has no right to models of this family (spec §5.2, §5.3).
    pub(crate) fn capability(family: &str) -> Self {
        let sentence = match family {
            "images" => "This key has no permission for image models.".to_owned(),
            family => format!("This key has no permission for the {family} model family."),
        };
        ApiError::new(ErrorKind::Permission, "insufficient_permissions", sentence).into()
    }

    /// The key has no right to this model.
    pub(crate) fn model(id: &str) -> Self {
        let sentence = format!("This key has no permission for the model '{id}'.");
        ApiError::new(ErrorKind::Permission, "insufficient_permissions", sentence).with_param("model").into()
    }

    /// More bytes than are taken.
    pub(crate) fn too_large() -> Self {
        let sentence = "The request body is larger than the limit.";
        ApiError::new(ErrorKind::TooLarge, "request_too_large", sentence).into()
    }

    /// A body of another kind than is taken, by its own account.
    pub(crate) fn media_type(accepted: &str, found: &str) -> Self {
        let found = wire::echo(found);
        let sentence = format!("Content-Type must be {accepted}, but it is '{found}'.");
        ApiError::new(ErrorKind::UnsupportedMediaType, "unsupported_media_type", sentence).into()
    }

    /// A compressed body.
    pub(crate) fn content_encoding() -> Self {
        let sentence = "Compressed request bodies are not supported; send the body without Content-Encoding.";
        ApiError::new(ErrorKind::UnsupportedMediaType, "unsupported_media_type", sentence).into()
    }

    /// The body did not come.
    pub(crate) fn slow_upload() -> Self {
        let sentence = "The request body did not arrive in time.";
        ApiError::new(ErrorKind::RequestTimeout, "request_timeout", sentence).into()
    }

    /// The body broke off or was not framed as HTTP asks.
    pub(crate) fn broken_upload() -> Self {
        Self::malformed("The request body could not be read.")
    }

    /// The client left before all of its body had come.
    pub(crate) fn client_gone() -> Self {
        Self { is_unheard: true, ..Self::broken_upload() }
    }

    /// More is being uploaded than memory is set aside for.
    pub(crate) fn overloaded() -> Self {
        let sentence = "The service is overloaded; try again in 1s.";
        ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence).with_retry_after(1).into()
    }

    /// The process ends before the answer has begun; another one may answer.
    pub(crate) fn shutting_down() -> Self {
        let sentence = "The service is shutting down.";
        ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence).with_retry_after(2).into()
    }

    /// No answer within the time that a request may take.
    pub(crate) fn timeout() -> Self {
        translate::api_error(&EngineError::Timeout(String::new())).into()
    }

    /// Nobody answers for this model.
    pub(crate) fn no_engine() -> Self {
        let sentence = "No engine is configured for this model.";
        ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence).with_retry_after(30).into()
    }

    /// The status, the headers beside the common ones, and the body.
    pub(crate) fn render(&self, style: Style, request_id: &str) -> (StatusCode, HeaderMap, Bytes) {
        let kind = self.error.kind;
        let (status, body) = match style {
            Style::OpenAi => (kind.status(), serde_json::to_vec(&self.error.body())),
            Style::Messages => {
                (messages::status(kind), serde_json::to_vec(&messages::ErrorBody::new(&self.error, request_id)))
            }
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Both bodies are made of strings and always have a JSON form.
        (status, self.headers(), body.unwrap_or_default().into())
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.error.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            headers.insert(HeaderName::from_static("retry-after-ms"), HeaderValue::from(spread(seconds)));
        }
        match self.error.kind {
            ErrorKind::Authentication => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            ErrorKind::TooLarge => {
                headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
            }
            ErrorKind::Upstream | ErrorKind::Overloaded | ErrorKind::Unavailable => {
                headers.insert(SHOULD_RETRY, HeaderValue::from_static("true"));
            }
            _ => {}
        }
        if let Some(methods) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(methods.as_str()));
        }
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        headers
    }
}

/// What clients make of it goes before what they make of the status.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// So many milliseconds, and up to a second more: those who are refused together shall not come back together. The
/// official clients prefer this to the whole seconds.
fn spread(seconds: u32) -> u64 {
    let more = u64::try_from(clock::random_bits() % 1000).unwrap_or_default();
    u64::from(seconds) * 1000 + more
}
