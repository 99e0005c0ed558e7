//! The request and response bodies of each path.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::{examples, form};
use crate::schemas::Schemas;

/// The request and successful response bodies of an operation: media types and their schemas.
#[derive(Default)]
pub(super) struct Exchange {
    /// The accepted request bodies, by media type; empty if the operation has no body.
    pub(super) request: Map<String, Value>,
    /// The bodies of responses with status 200, by media type.
    pub(super) reply: Map<String, Value>,
}

impl Exchange {
    pub(super) fn responses(schemas: &mut Schemas) -> Self {
        Self::new::<responses::Request, responses::Response>(schemas, "Responses")
            .with_events(named_events::<responses::Event>(schemas, "Responses"))
            .with_examples(examples::responses())
    }

    pub(super) fn chat(schemas: &mut Schemas) -> Self {
        let exchange = Self::new::<chat::Request, chat::Completion>(schemas, "Chat");
        let chunk = schemas.written::<chat::Chunk>("Chat");
        let error = schemas.written::<wire::ErrorBody>("");
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
        exchange
            .with_events(schemas.named("ChatServerSentEvent", event))
            .with_examples(examples::chat())
    }

    pub(super) fn messages(schemas: &mut Schemas) -> Self {
        Self::new::<messages::Request, messages::Message>(schemas, "Messages")
            .with_events(named_events::<messages::Event>(schemas, "Messages"))
            .with_examples(examples::messages())
    }

    /// `POST /v1/messages/count_tokens`: the same request as `POST /v1/messages`.
    pub(super) fn count_tokens(schemas: &mut Schemas) -> Self {
        Self::new::<messages::Request, messages::TokenCount>(schemas, "Messages")
            .with_examples(examples::count_tokens())
    }

    /// `POST /v1/responses/input_tokens`: the same request as `POST /v1/responses`.
    pub(super) fn input_tokens(schemas: &mut Schemas) -> Self {
        Self::new::<responses::Request, responses::InputTokenCount>(schemas, "Responses")
            .with_examples(examples::input_tokens())
    }

    pub(super) fn image_generations(schemas: &mut Schemas) -> Self {
        Self::new::<images::Generation, images::Response>(schemas, "Images")
            .with_events(named_events::<images::Event>(schemas, "Images"))
            .with_examples(examples::image_generations())
    }

    /// `POST /v1/images/edits`: JSON, or a form with the images as files.
    pub(super) fn image_edits(schemas: &mut Schemas) -> Self {
        let mut exchange = Self::new::<images::Edit, images::Response>(schemas, "Images")
            .with_events(named_events::<images::Event>(schemas, "Images"))
            .with_examples(examples::image_edits());
        exchange
            .request
            .insert("multipart/form-data".to_owned(), form::image_edits(schemas));
        exchange
    }

    /// JSON in both directions.
    fn new<Q: JsonSchema, R: JsonSchema>(schemas: &mut Schemas, prefix: &str) -> Self {
        let request = json(&schemas.read::<Q>(prefix));
        Self {
            request,
            ..Self::reply::<R>(schemas, prefix)
        }
    }

    /// A reply as JSON to a request without a body.
    pub(super) fn reply<R: JsonSchema>(schemas: &mut Schemas, prefix: &str) -> Self {
        Self {
            request: Map::new(),
            reply: json(&schemas.written::<R>(prefix)),
        }
    }

    /// Adds the response of a streaming request: a stream of these events.
    fn with_events(mut self, event: Value) -> Self {
        self.reply
            .insert("text/event-stream".to_owned(), json!({ "schema": event }));
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

/// Adds the schema of a server-sent event whose name is the `type` of its data, and returns a
/// reference to it.
///
/// OpenAPI 3.1 does not define the meaning of a stream's schema. Here it describes one event as an
/// object of its fields, like `itemSchema` in [OpenAPI
/// 3.2](https://spec.openapis.org/oas/v3.2.0.html) (§4.14.4).
fn named_events<E: JsonSchema>(schemas: &mut Schemas, prefix: &str) -> Value {
    let mut data = content(&schemas.written::<E>(prefix));
    data["type"] = "string".into();
    let event = json!({
        "description": "A server-sent event. Its name is the `type` of its data.",
        "type": "object",
        "properties": { "event": { "type": "string" }, "data": data },
        "required": ["event", "data"],
    });
    schemas.named(&format!("{prefix}ServerSentEvent"), event)
}

/// Returns the schema of a string that contains JSON of this schema.
fn content(schema: &Value) -> Value {
    json!({ "contentMediaType": JSON, "contentSchema": schema })
}

const JSON: &str = "application/json";
