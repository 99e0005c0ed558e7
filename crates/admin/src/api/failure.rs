//! The errors of the admin API.

use std::fmt::Display;

use accounting::StoreError;
use gateway::exchange::body::{Body, whole};
use gateway::exchange::refusal::Refusal;
use http::{HeaderValue, Method, Response, StatusCode};
use lease::Unreachable;
use wire::{ErrorBody, ErrorDetail};

use crate::access::NoAccess;

/// An error response, in the shape of OpenAI's errors.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u16,
    code: &'static str,
    message: String,
    /// The field or parameter at fault.
    param: Option<String>,
    header: Option<(&'static str, String)>,
}

impl Failure {
    fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            param: None,
            header: None,
        }
    }

    fn at(mut self, param: &str) -> Self {
        self.param = Some(param.to_owned());
        self
    }

    fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.header = Some((name, value.to_owned()));
        self
    }

    /// A field or parameter is not valid. `problem` says what was found and what is accepted.
    pub(super) fn invalid(param: &str, problem: impl Display) -> Self {
        Self::value(param, format!("{param}: {problem}"))
    }

    /// A field is not valid, as this message says, which names it.
    pub(super) fn value(param: &str, message: String) -> Self {
        Self::new(400, "invalid_value", message).at(param)
    }

    /// A field or parameter is unknown. `accepted` are those that there are.
    pub(super) fn unknown(param: &str, accepted: &[&str]) -> Self {
        let accepted = match accepted {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let shown = wire::truncate_for_error(param);
        let message = format!("{shown}: is unknown; accepted: {accepted}");
        Self::new(400, "unknown_parameter", message).at(shown)
    }

    /// The body does not have its form. `message` names the field.
    pub(crate) fn body(param: &str, message: impl Into<String>) -> Self {
        let failure = Self::new(400, "invalid_body", message);
        match param {
            "" => failure,
            param => failure.at(param),
        }
    }

    pub(super) fn unexpected_body(method: &Method) -> Self {
        Self::body("", format!("A {method} request has no body."))
    }

    pub(super) fn name_taken(message: impl Into<String>) -> Self {
        Self::new(409, "name_taken", message).at("name")
    }

    /// There is no such key, request or the like.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "not_found", message).at("id")
    }

    /// There is no such path, but there are `others`.
    pub(crate) fn no_path(path: &str, others: &str) -> Self {
        let path = wire::truncate_for_error(path);
        let message = format!("No such path: {path}. There are {others}.");
        Self::new(404, "not_found", message)
    }

    pub(crate) fn method(method: &Method, path: &str, allow: &str) -> Self {
        let path = wire::truncate_for_error(path);
        let message = format!("Method {method} is not allowed for {path}; allowed: {allow}.");
        Self::new(405, "method_not_allowed", message).with_header("allow", allow)
    }

    pub(super) fn no_store() -> Self {
        let message = "The admin API needs [state] accounting: a store of keys and usage.";
        Self::new(404, "no_store", message)
    }

    fn store_away(message: String) -> Self {
        tracing::error!(error = message, "an admin request has failed");
        Self::new(503, "store_unavailable", message).with_header("retry-after", "5")
    }

    pub(crate) fn internal(cause: impl Display) -> Self {
        let cause = cause.to_string();
        tracing::error!(cause, "an admin request has failed");
        let message = "The server had an error while processing the request.";
        Self::new(500, "server_error", message)
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let kind = match self.status {
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
        let mut response = super::response("application/json", whole(body.into()));
        let status = StatusCode::from_u16(self.status);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some((name, value)) = self.header
            && let Ok(value) = HeaderValue::try_from(value)
        {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<NoAccess> for Failure {
    fn from(reason: NoAccess) -> Self {
        match reason {
            NoAccess::Host => Self::new(421, "wrong_host", HOST).at("Host"),
            NoAccess::Origin => Self::new(403, "wrong_origin", ORIGIN).at("Origin"),
            NoAccess::Disabled => Self::new(404, "admin_api_disabled", DISABLED),
            NoAccess::Key(message) => Self::new(401, "invalid_admin_key", message)
                .at("Authorization")
                .with_header("www-authenticate", "Bearer"),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Unreachable { .. } => Self::store_away(message),
            StoreError::Invalid(_) => Self::new(400, "invalid_value", message),
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
        Self::new(error.kind.status(), error.code, error.message)
    }
}

const HOST: &str =
    "The header Host is neither an address, nor localhost, nor in state.admin_hosts.";
const ORIGIN: &str =
    "The request comes from a page of another origin, or lacks the header x-sluicegate-console.";
const DISABLED: &str = "There is no admin API: set state.admin_key in the configuration, or the environment variable SLUICEGATE_ADMIN_KEY.";

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
