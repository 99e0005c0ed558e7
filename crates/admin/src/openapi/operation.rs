//! One operation of the document: its parameters, its request and every response.

use gateway::exchange::refusal::Style;
use gateway::request::routing::{Endpoint, style};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use wire::ErrorKind;

use super::exchange::Exchange;
use super::failures;

/// An endpoint with its description.
pub(super) struct Operation {
    pub(super) endpoint: Endpoint,
    /// The path, with parameters in braces.
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) exchange: Exchange,
}

/// Returns the operation of an endpoint and path, to be completed by the following methods.
pub(super) fn operation(endpoint: Endpoint, path: &'static str) -> Operation {
    Operation {
        endpoint,
        path,
        id: "",
        summary: "",
        exchange: Exchange::default(),
    }
}

impl Operation {
    pub(super) fn named(self, id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            ..self
        }
    }

    pub(super) fn with(self, exchange: Exchange) -> Self {
        Self { exchange, ..self }
    }

    /// Returns the operation object, and adds its failures to `responses`, which operations of the
    /// same group share. Their bodies have the schema `error`.
    pub(super) fn describe(&self, error: &Value, responses: &mut Map<String, Value>) -> Value {
        let mut operation = json!({
            "operationId": self.id,
            "summary": self.summary,
            "tags": [self.tag()],
            "security": self.security(),
        });
        if self.endpoint == Endpoint::Responses {
            operation["description"] = WEBSOCKET.into();
        }
        let parameters = self.parameters();
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if !self.exchange.request.is_empty() {
            operation["requestBody"] = json!({
                "description": "It may be compressed, with `Content-Encoding: zstd` or `gzip`.",
                "required": true,
                "content": self.exchange.request,
            });
        }
        operation["responses"] = self.responses(error, responses).into();
        operation
    }

    fn responses(&self, error: &Value, shared: &mut Map<String, Value>) -> Map<String, Value> {
        let mut all = Map::from_iter([("200".to_owned(), self.success())]);
        for kind in self.failures() {
            let status = self.status(kind);
            let name = format!("{}{status}", self.group());
            let response = json!({ "$ref": format!("#/components/responses/{name}") });
            let described = failures::response(kind, error, self.endpoint.allow());
            shared.insert(name, described);
            all.insert(status.to_string(), response);
        }
        all.sort_keys();
        all
    }

    /// Returns the method of the operation, of those that its path allows.
    pub(super) fn method(&self) -> &'static str {
        match self.endpoint {
            Endpoint::Models
            | Endpoint::Model(_)
            | Endpoint::Response(_)
            | Endpoint::InputItems(_) => "GET",
            Endpoint::DeleteResponse(_) => "DELETE",
            _ => "POST",
        }
    }

    fn success(&self) -> Value {
        let mut headers = failures::common_headers();
        let mut description = "The response.";
        if self.exchange.reply.len() > 1 {
            description = "The response, or its events if the request has `stream`.";
            let dropped = failures::header("Dropped");
            headers.insert("x-sluicegate-dropped".to_owned(), dropped);
        }
        json!({ "description": description, "headers": headers, "content": self.exchange.reply })
    }

    fn failures(&self) -> Vec<ErrorKind> {
        let further: &[ErrorKind] = match &self.endpoint {
            Endpoint::Models => &[],
            Endpoint::Model(_) => &[ErrorKind::NotFound],
            _ if self.exchange.request.is_empty() => &failures::OF_RESPONSES,
            _ => &failures::OF_ENGINES,
        };
        let own: &[ErrorKind] = match &self.endpoint {
            Endpoint::Responses => &[ErrorKind::UpgradeRequired],
            _ if self.tag() == MESSAGES => &[ErrorKind::Overloaded],
            _ => &[],
        };
        let all = failures::COMMON.iter().chain(further).chain(own);
        all.copied().collect()
    }

    fn status(&self, kind: ErrorKind) -> u16 {
        match self.tag() {
            MESSAGES => messages::status(kind),
            _ => kind.status(),
        }
    }

    /// Returns the headers that may carry the API key.
    fn security(&self) -> Value {
        match self.endpoint.takes_x_api_key() {
            true => json!([{ (BEARER): [] }, { (API_KEY): [] }]),
            false => json!([{ (BEARER): [] }]),
        }
    }

    fn parameters(&self) -> Vec<Value> {
        let text = json!({ "type": "string" });
        let mut parameters = match &self.endpoint {
            Endpoint::Models => {
                let limit = json!({ "type": "integer", "minimum": 1, "maximum": 1000 });
                vec![
                    parameter("query", "limit", "The maximum number of models.", &limit),
                    parameter("query", "after_id", "Return models after this id.", &text),
                    parameter("query", "before_id", "Return models before this id.", &text),
                ]
            }
            Endpoint::Model(_) => {
                let schema = json!({ "type": "string", "pattern": "^[^/]+$" });
                let mut id = parameter("path", "id", "The id of the model.", &schema);
                id["examples"] = json!({ "known": { "value": "alt-flash" }, "unknown": { "value": "model-none" } });
                vec![id]
            }
            Endpoint::Response(_) | Endpoint::DeleteResponse(_) | Endpoint::CancelResponse(_) => {
                vec![response_id()]
            }
            Endpoint::InputItems(_) => {
                let limit = json!({ "type": "integer", "minimum": 1, "maximum": 100 });
                let order = json!({ "enum": ["asc", "desc"] });
                vec![
                    response_id(),
                    parameter("query", "limit", "The maximum number of items.", &limit),
                    parameter("query", "order", "The order of the items.", &order),
                    parameter("query", "after", "Return items after this id.", &text),
                ]
            }
            _ => Vec::new(),
        };
        if self.endpoint.takes_x_api_key() {
            parameters.push(parameter("header", "anthropic-version", VERSION, &text));
        }
        parameters
    }

    /// The group of operations that share their failures: the operations of a tag, if they allow
    /// the same method.
    fn group(&self) -> &'static str {
        match self.endpoint {
            Endpoint::Response(_) | Endpoint::DeleteResponse(_) => "Response",
            Endpoint::InputItems(_) => "InputItems",
            _ => self.tag(),
        }
    }

    fn tag(&self) -> &'static str {
        match self.path.split('/').nth(2) {
            Some("messages") => MESSAGES,
            Some("images") => IMAGES,
            Some("models") => MODELS,
            _ => TEXT,
        }
    }
}

/// Returns the schema of error bodies on a path: one style, or both if the request's headers decide
/// between them.
pub(super) fn error(path: &str, openai: &Value, messages: &Value) -> Value {
    let with_api_key = HeaderMap::from_iter([(X_API_KEY, HeaderValue::from_static(""))]);
    match (style(path, &HeaderMap::new()), style(path, &with_api_key)) {
        (Style::OpenAi, Style::OpenAi) => openai.clone(),
        (Style::Messages, Style::Messages) => messages.clone(),
        _ => json!({ "anyOf": [openai, messages] }),
    }
}

fn response_id() -> Value {
    let schema = json!({ "type": "string", "pattern": "^[^/]+$" });
    parameter("path", "id", "The id of the response.", &schema)
}

pub(super) fn parameter(place: &str, name: &str, description: &str, schema: &Value) -> Value {
    let required = place == "path";
    json!({ "name": name, "in": place, "description": description, "required": required, "schema": schema })
}

pub(super) const TEXT: &str = "Text";
pub(super) const MESSAGES: &str = "Messages";
pub(super) const IMAGES: &str = "Images";
pub(super) const MODELS: &str = "Models";
pub(super) const BEARER: &str = "bearer";
pub(super) const API_KEY: &str = "apiKey";
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const VERSION: &str =
    "Sent by Anthropic clients. The value is ignored; with it, errors have Anthropic's format.";
/// OpenAPI has no messages of WebSockets.
const WEBSOCKET: &str = "\
    A GET request with the handshake of RFC 6455 gets 101 and opens a WebSocket: each message of the client is an event \
    `response.create` with the members of such a request, and each event of a response is a message. Any other request \
    for a WebSocket gets 426.";
