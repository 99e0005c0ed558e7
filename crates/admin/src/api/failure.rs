//! The errors of the admin API.

use accounting::StoreError;
use gateway::exchange::body::{Body, whole};
use gateway::exchange::refusal::Refusal;
use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use lease::Unreachable;
use wire::{ErrorBody, ErrorDetail};

use crate::access::NoAccess;

/// An error response, in the shape of OpenAI's errors.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// The field or parameter at fault.
    param: Option<String>,
    header: Option<(HeaderName, &'static str)>,
}

impl Failure {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            param: None,
            header: None,
        }
    }

    fn at(self, param: impl Into<String>) -> Self {
        Self {
            param: Some(param.into()),
            ..self
        }
    }

    /// A field or parameter is not valid. `problem` says what was found and what is accepted.
    pub(super) fn invalid(param: &str, problem: impl std::fmt::Display) -> Self {
        Self::value(param, format!("{param}: {problem}"))
    }

    /// A field is not valid, as this message says, which names it.
    pub(super) fn value(param: &str, message: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_value", message).at(param)
    }

    /// A field or parameter is unknown. `accepted` are those that there are.
    pub(super) fn unknown(param: &str, accepted: &[&str]) -> Self {
        let accepted = match accepted {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let shown = wire::truncate_for_error(param);
        let message = format!("{shown}: is unknown; accepted: {accepted}");
        Self::new(StatusCode::BAD_REQUEST, "unknown_parameter", message).at(shown)
    }

    /// The body does not have its form. `message` names the field.
    pub(super) fn body(param: &str, message: impl Into<String>) -> Self {
        let failure = Self::new(StatusCode::BAD_REQUEST, "invalid_body", message);
        match param {
            "" => failure,
            param => failure.at(param),
        }
    }

    pub(super) fn unexpected_body(method: &Method) -> Self {
        Self::body("", format!("A {method} request has no body."))
    }

    pub(super) fn name_taken(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "name_taken", message).at("name")
    }

    /// There is no such key, request or the like.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message).at("id")
    }

    pub(super) fn no_path(path: &str) -> Self {
        let path = wire::truncate_for_error(path);
        let message = format!(
            "No such path: {path}. There are /admin/v1/keys, keys/{{id}}, keys/{{id}}/rotate, usage, usage/rows, requests/{{id}}, limits, prices and audit."
        );
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(super) fn method(method: &Method, path: &str, allow: &'static str) -> Self {
        let path = wire::truncate_for_error(path);
        let message = format!("Method {method} is not allowed for {path}; allowed: {allow}.");
        Self {
            header: Some((ALLOW, allow)),
            ..Self::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                message,
            )
        }
    }

    fn disabled() -> Self {
        let message = "There is no admin API: set state.admin_key in the configuration, or the environment variable SLUICEGATE_ADMIN_KEY.";
        Self::new(StatusCode::NOT_FOUND, "admin_api_disabled", message)
    }

    pub(super) fn no_store() -> Self {
        let message = "The admin API needs [state] accounting: a store of keys and usage.";
        Self::new(StatusCode::NOT_FOUND, "no_store", message)
    }

    fn host() -> Self {
        let message =
            "The header Host is neither an address, nor localhost, nor in state.admin_hosts.";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message).at("Host")
    }

    fn unauthorized(message: String) -> Self {
        Self {
            header: Some((WWW_AUTHENTICATE, "Bearer")),
            ..Self::new(StatusCode::UNAUTHORIZED, "invalid_admin_key", message).at("Authorization")
        }
    }

    fn store_away(message: String) -> Self {
        tracing::error!(error = message, "an admin request has failed");
        Self {
            header: Some((RETRY_AFTER, "5")),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store_unavailable",
                message,
            )
        }
    }

    pub(super) fn internal(cause: String) -> Self {
        tracing::error!(cause, "an admin request has failed");
        let message = "The server had an error while processing the request.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        let body = ErrorBody {
            error: ErrorDetail {
                message: self.message,
                kind: kind.to_owned(),
                param: self.param,
                code: Some(self.code.to_owned()),
            },
        };
        // It consists of strings, which can always be serialized.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = super::response(self.status, "application/json", whole(body.into()));
        if let Some((name, value)) = self.header {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

impl From<NoAccess> for Failure {
    fn from(reason: NoAccess) -> Self {
        match reason {
            NoAccess::Host => Self::host(),
            NoAccess::Disabled => Self::disabled(),
            NoAccess::Key(message) => Self::unauthorized(message),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Unreachable { .. } => Self::store_away(message),
            StoreError::Invalid(_) => Self::new(StatusCode::BAD_REQUEST, "invalid_value", message),
            StoreError::UnknownKey(_) => Self::not_found(message),
            StoreError::NameTaken(_) => Self::name_taken(message),
            _ => Self::internal(message),
        }
    }
}

/// The store that lends limits does not answer.
impl From<Unreachable> for Failure {
    fn from(error: Unreachable) -> Self {
        Self::store_away(error.to_string())
    }
}

/// The failure of reading a body.
impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let error = refusal.error;
        let status = StatusCode::from_u16(error.kind.status());
        Self::new(
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            error.code,
            error.message,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(error: StoreError) -> Response<Body> {
        Failure::from(error).into_response()
    }

    #[test]
    fn a_store_that_is_away_is_no_fault_of_the_request() {
        let away = response(StoreError::Unreachable {
            store: "a.db".to_owned(),
            reason: "the disk is full".to_owned(),
        });
        assert_eq!(away.status(), 503);
        assert_eq!(away.headers()["retry-after"], "5");
        let refused = response(StoreError::Refused {
            store: "a.db".to_owned(),
            reason: "a newer schema".to_owned(),
        });
        assert_eq!(refused.status(), 500);
        let invalid = response(StoreError::Invalid("limits".to_owned()));
        assert_eq!(invalid.status(), 400);
        let taken = response(StoreError::NameTaken("mobile".to_owned()));
        assert_eq!(taken.status(), 409);
        let unknown = response(StoreError::UnknownKey("key_1".to_owned()));
        assert_eq!(unknown.status(), 404);
    }
}
