//! Error bodies, in the forms of the protocols.

use serde_json::{Value, json};

use super::nonce;
use crate::request::{Protocol, Request};

#[derive(Debug)]
pub(crate) struct Failure {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) param: Option<&'static str>,
    pub(super) message: String,
}

impl Failure {
    /// The generic error of a status.
    pub(crate) fn of_status(status: u16, message: impl Into<String>) -> Self {
        let code = match status {
            401 => "invalid_api_key",
            403 => "insufficient_permissions",
            404 => "model_not_found",
            413 => "request_too_large",
            429 => "rate_limit_exceeded",
            400..500 => "invalid_value",
            _ => "server_error",
        };
        Self {
            status,
            code,
            param: None,
            message: message.into(),
        }
    }

    /// The error for a history that is longer than the context of the model.
    pub(super) fn too_long(request: &Request) -> Self {
        let (param, message) = match request.protocol() {
            // https://docs.claude.com/en/api/errors
            Some(Protocol::Messages) => {
                let message = "prompt is too long: 208310 tokens > 200000 maximum";
                return Self::invalid("messages", message);
            }
            Some(Protocol::Chat) => (
                "messages",
                "This model's maximum context length is 128000 tokens. However, your messages \
                 resulted in 130412 tokens. Please reduce the length of the messages.",
            ),
            _ => (
                "input",
                "Your input exceeds the context window of this model. Please adjust your input and \
                 try again.",
            ),
        };
        Self {
            code: "context_length_exceeded",
            ..Self::invalid(param, message)
        }
    }

    pub(super) fn missing(param: &'static str) -> Self {
        let message = format!("Missing required parameter: '{param}'.");
        Self {
            status: 400,
            code: "missing_required_parameter",
            param: Some(param),
            message,
        }
    }

    pub(super) fn invalid(param: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: 400,
            code: "invalid_value",
            param: Some(param),
            message: message.into(),
        }
    }

    /// The body of the error, in the protocol of the request.
    pub(crate) fn body(&self, request: &Request) -> Value {
        match request.protocol() {
            Some(Protocol::Messages) => {
                let mut body = self.messages_error();
                body["request_id"] = format!("req_{}", nonce(request)).into();
                body
            }
            _ => json!({"error": self.openai_error()}),
        }
    }

    /// `{message,type,param,code}`.
    pub(crate) fn openai_error(&self) -> Value {
        let kind = match self.status {
            429 => "requests",
            400..500 => "invalid_request_error",
            _ => "server_error",
        };
        json!({"message": self.message, "type": kind, "param": self.param, "code": self.code})
    }

    /// `{type:"error",error:{type,message}}`.
    pub(crate) fn messages_error(&self) -> Value {
        let kind = match self.status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            408 | 504 => "timeout_error",
            503 | 529 => "overloaded_error",
            400..500 => "invalid_request_error",
            _ => "api_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": self.message}})
    }
}
