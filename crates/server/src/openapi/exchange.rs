//! The request and response bodies of each path.

use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use super::{examples, form};

/// The request and successful response bodies of an operation: media types and their schemas.
pub(super) struct Exchange {
    /// The accepted request bodies, by media type; empty if the operation has no body.
    pub(super) request: Map<String, Value>,
    /// The bodies of responses with status 200, by media type.
    pub(super) reply: Map<String, Value>,
}

impl Exchange {
    /// `POST /v1/responses`.
    pub(super) fn responses(schemas: &mut Schemas) -> Self {
        let request = schemas.read::<responses::Request>("Responses");
        let reply = schemas.written::<responses::Response>("Responses");
        let event = schemas.written::<responses::Event>("Responses");
        let event = named_events("ResponsesServerSentEvent", &event, schemas);
        Self { request: json(&request), reply: json(&reply) }.with_events(&event).with_examples(examples::responses())
    }

    /// `POST /v1/chat/completions`.
    pub(super) fn chat(schemas: &mut Schemas) -> Self {
        let request = schemas.read::<chat::Request>("Chat");
        let reply = schemas.written::<chat::Completion>("Chat");
        let (chunk, error) = (schemas.written::<chat::Chunk>("Chat"), schemas.written::<wire::ErrorBody>(""));
        let data = json!({
            "type": "string",
            "anyOf": [{ "const": "[DONE]" }, content(&json!({ "anyOf": [chunk, error] }))],
        });
        let event = json!({
            "description": "An event without a name. Its data is a chunk, the error that ends the stream, or `[DONE]`.",
            "type": "object",
            "properties": { "data": data },
            "required": ["data"],
        });
        let event = schemas.named("ChatServerSentEvent", event);
        Self { request: json(&request), reply: json(&reply) }.with_events(&event).with_examples(examples::chat())
    }

    /// `POST /v1/messages`.
    pub(super) fn messages(schemas: &mut Schemas) -> Self {
        let request = schemas.read::<messages::Request>("Messages");
        let reply = schemas.written::<messages::Message>("Messages");
        let event = schemas.written::<messages::Event>("Messages");
        let event = named_events("MessagesServerSentEvent", &event, schemas);
        Self { request: json(&request), reply: json(&reply) }.with_events(&event).with_examples(examples::messages())
    }

    /// `POST /v1/messages/count_tokens`: the same request as `POST /v1/messages`.
    pub(super) fn count_tokens(schemas: &mut Schemas) -> Self {
        let request = schemas.read::<messages::Request>("Messages");
        let reply = schemas.written::<messages::TokenCount>("Messages");
        Self { request: json(&request), reply: json(&reply) }.with_examples(examples::count_tokens())
    }

    /// `POST /v1/images/generations`.
    pub(super) fn image_generations(schemas: &mut Schemas) -> Self {
        let request = schemas.read::<images::Generation>("Images");
        Self { request: json(&request), ..Self::pictures(schemas) }.with_examples(examples::image_generations())
    }

    /// `POST /v1/images/edits`: JSON, or a form with the images as files.
    pub(super) fn image_edits(schemas: &mut Schemas) -> Self {
        let request = schemas.read::<images::Edit>("Images");
        let form = form::image_edits(schemas);
        Self { request: json(&request), ..Self::pictures(schemas) }
            .with_examples(examples::image_edits())
            .with_form(&form)
    }

    /// The response of both image operations, unary or streamed; without a request.
    fn pictures(schemas: &mut Schemas) -> Self {
        let reply = schemas.written::<images::Response>("Images");
        let event = schemas.written::<images::Event>("Images");
        let event = named_events("ImagesServerSentEvent", &event, schemas);
        Self { request: Map::new(), reply: json(&reply) }.with_events(&event)
    }

    /// `GET /v1/models`.
    pub(super) fn models(schemas: &mut Schemas) -> Self {
        Self { request: Map::new(), reply: json(&schemas.written::<catalog::List>("Models")) }
    }

    /// `GET /v1/models/{id}`.
    pub(super) fn model(schemas: &mut Schemas) -> Self {
        Self { request: Map::new(), reply: json(&schemas.written::<catalog::Entry>("Models")) }
    }

    /// Adds the response of a streaming request: a stream of these events.
    fn with_events(mut self, event: &Value) -> Self {
        self.reply.insert("text/event-stream".to_owned(), json!({ "schema": event }));
        self
    }

    /// Adds a request body as a multipart form.
    fn with_form(mut self, form: &form::Form) -> Self {
        let body = json!({ "schema": form.schema, "encoding": form.encoding });
        self.request.insert("multipart/form-data".to_owned(), body);
        self
    }

    fn with_examples(mut self, examples: Value) -> Self {
        self.request[JSON]["examples"] = examples;
        self
    }
}

/// Returns a JSON body of this schema.
fn json(schema: &Value) -> Map<String, Value> {
    Map::from_iter([(JSON.to_owned(), json!({ "schema": schema }))])
}

/// Adds the schema of a server-sent event whose name is the `type` of its data, and returns a reference to it.
///
/// OpenAPI 3.1 does not define what the schema of a stream describes. Here it describes one event as an object of its
/// fields, like `itemSchema` in [OpenAPI 3.2](https://spec.openapis.org/oas/v3.2.0.html) (§4.14.4).
fn named_events(name: &str, event: &Value, schemas: &mut Schemas) -> Value {
    let mut data = content(event);
    data["type"] = "string".into();
    let event = json!({
        "description": "A server-sent event. Its name is the `type` of its data.",
        "type": "object",
        "properties": { "event": { "type": "string" }, "data": data },
        "required": ["event", "data"],
    });
    schemas.named(name, event)
}

/// Returns the schema of a string that contains JSON of this schema.
fn content(schema: &Value) -> Value {
    json!({ "contentMediaType": JSON, "contentSchema": schema })
}

const JSON: &str = "application/json";
