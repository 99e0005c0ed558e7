//! One operation of the document: its parameters, its request and every response.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use wire::ErrorKind;

use super::exchange::Exchange;
use super::failures;
use crate::refusal::Style;
use crate::routing::{Endpoint, style};

/// An endpoint with its description.
pub(super) struct Operation {
    /// The path, with parameters in braces.
    pub(super) path: String,
    endpoint: Endpoint,
    id: &'static str,
    summary: &'static str,
    exchange: Exchange,
    error: Value,
}

impl Operation {
    /// Creates the operation of an endpoint; `errors` are the schemas of error bodies in OpenAI's and in Anthropic's
    /// style.
    pub(super) fn new(
        endpoint: Endpoint,
        id: &'static str,
        summary: &'static str,
        exchange: Exchange,
        errors: (Value, Value),
    ) -> Self {
        let path = path(&endpoint);
        let error = error(&path, errors);
        Self { path, endpoint, id, summary, exchange, error }
    }

    /// Returns the endpoint.
    #[cfg(test)]
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the method in lower case, as in the document.
    pub(super) fn method(&self) -> String {
        self.endpoint.allow().as_str().to_ascii_lowercase()
    }

    /// Returns the operation object, and adds its failures to `responses`, which operations of the same tag share.
    pub(super) fn describe(&self, responses: &mut Map<String, Value>) -> Value {
        let mut operation = json!({
            "operationId": self.id,
            "summary": self.summary,
            "tags": [self.tag()],
            "security": self.security(),
        });
        let parameters = self.parameters();
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if self.takes_body() {
            operation["requestBody"] = json!({ "required": true, "content": self.exchange.request });
        }
        operation["responses"] = self.responses(responses).into();
        operation
    }

    fn responses(&self, shared: &mut Map<String, Value>) -> Map<String, Value> {
        let mut all = Map::from_iter([("200".to_owned(), self.success())]);
        for kind in self.failures() {
            let status = self.status(kind);
            let name = format!("{}{status}", self.tag());
            let response = json!({ "$ref": format!("#/components/responses/{name}") });
            shared.insert(name, failures::response(kind, &self.error, self.endpoint.allow().as_str()));
            all.insert(status.to_string(), response);
        }
        all.sort_keys();
        all
    }

    fn success(&self) -> Value {
        let mut headers = failures::common_headers();
        let streams = self.exchange.reply.len() > 1;
        if streams {
            headers.insert("x-sluicegate-dropped".to_owned(), failures::header("Dropped"));
        }
        let description =
            if streams { "The response, or its events if the request has `stream`." } else { "The response." };
        json!({ "description": description, "headers": headers, "content": self.exchange.reply })
    }

    fn failures(&self) -> Vec<ErrorKind> {
        let further: &[ErrorKind] = match &self.endpoint {
            Endpoint::Models => &[],
            Endpoint::Model(_) => &[ErrorKind::NotFound],
            _ => &failures::OF_ENGINES,
        };
        let own: &[ErrorKind] = if self.uses_messages_errors() { &[ErrorKind::Overloaded] } else { &[] };
        failures::COMMON.iter().chain(further).chain(own).copied().collect()
    }

    fn status(&self, kind: ErrorKind) -> u16 {
        if self.uses_messages_errors() { messages::status(kind) } else { kind.status() }
    }

    fn uses_messages_errors(&self) -> bool {
        matches!(self.endpoint, Endpoint::Messages | Endpoint::CountTokens)
    }

    fn takes_body(&self) -> bool {
        !self.exchange.request.is_empty()
    }

    /// Returns the headers that may carry the API key.
    fn security(&self) -> Value {
        if self.endpoint.takes_x_api_key() {
            json!([{ (BEARER): [] }, { (API_KEY): [] }])
        } else {
            json!([{ (BEARER): [] }])
        }
    }

    fn parameters(&self) -> Vec<Value> {
        let mut parameters = match &self.endpoint {
            Endpoint::Models => page_parameters(),
            Endpoint::Model(_) => vec![model_parameter()],
            _ => Vec::new(),
        };
        if self.endpoint.takes_x_api_key() {
            parameters.push(parameter("header", "anthropic-version", VERSION, &json!({ "type": "string" })));
        }
        parameters
    }

    fn tag(&self) -> &'static str {
        match self.endpoint {
            Endpoint::Responses | Endpoint::Chat => TEXT,
            Endpoint::Messages | Endpoint::CountTokens => MESSAGES,
            Endpoint::ImageGenerations | Endpoint::ImageEdits => IMAGES,
            Endpoint::Models | Endpoint::Model(_) => MODELS,
        }
    }
}

fn path(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Responses => "/v1/responses".to_owned(),
        Endpoint::Chat => "/v1/chat/completions".to_owned(),
        Endpoint::Messages => "/v1/messages".to_owned(),
        Endpoint::CountTokens => "/v1/messages/count_tokens".to_owned(),
        Endpoint::ImageGenerations => "/v1/images/generations".to_owned(),
        Endpoint::ImageEdits => "/v1/images/edits".to_owned(),
        Endpoint::Models => "/v1/models".to_owned(),
        Endpoint::Model(id) => format!("/v1/models/{id}"),
    }
}

/// Returns the schema of error bodies on a path: one style, or both if the request's headers decide between them.
fn error(path: &str, (openai, messages): (Value, Value)) -> Value {
    let with_api_key = HeaderMap::from_iter([(X_API_KEY, HeaderValue::from_static(""))]);
    match (style(path, &HeaderMap::new()), style(path, &with_api_key)) {
        (Style::OpenAi, Style::OpenAi) => openai,
        (Style::Messages, Style::Messages) => messages,
        _ => json!({ "anyOf": [openai, messages] }),
    }
}

fn model_parameter() -> Value {
    let mut id = parameter("path", "id", "The id of the model.", &json!({ "type": "string", "pattern": "^[^/]+$" }));
    id["examples"] = json!({ "known": { "value": "alt-flash" }, "unknown": { "value": "model-none" } });
    id
}

fn page_parameters() -> Vec<Value> {
    vec![
        parameter(
            "query",
            "limit",
            "The maximum number of models.",
            &json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
        ),
        parameter("query", "after_id", "Return models after this id.", &json!({ "type": "string" })),
        parameter("query", "before_id", "Return models before this id.", &json!({ "type": "string" })),
    ]
}

fn parameter(place: &str, name: &str, description: &str, schema: &Value) -> Value {
    let required = place == "path";
    json!({ "name": name, "in": place, "description": description, "required": required, "schema": schema })
}

/// The path parameter with the id of a model.
pub(super) const ID: &str = "{id}";
pub(super) const TEXT: &str = "Text";
pub(super) const MESSAGES: &str = "Messages";
pub(super) const IMAGES: &str = "Images";
pub(super) const MODELS: &str = "Models";
pub(super) const BEARER: &str = "bearer";
pub(super) const API_KEY: &str = "apiKey";
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const VERSION: &str = "Sent by Anthropic clients. The value is ignored; with it, errors have Anthropic's format.";
