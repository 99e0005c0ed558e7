//! What goes to and fro at each path.

use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use super::{examples, form};

/// What a client sends and what it gets when all is well: media types and their schemas.
pub(super) struct Exchange {
    /// The bodies that are taken, by media type; none when there is no body.
    pub(super) request: Map<String, Value>,
    /// The replies of status 200, by media type.
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
            "description": "An event without a name: a chunk, the failure that ends the stream, or `[DONE]`.",
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

    /// `POST /v1/messages/count_tokens`: the same request, of which only the prompt's tokens are counted.
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

    /// `POST /v1/images/edits`: JSON, or a form with the pictures as files.
    pub(super) fn image_edits(schemas: &mut Schemas) -> Self {
        let request = schemas.read::<images::Edit>("Images");
        let form = form::image_edits(schemas);
        Self { request: json(&request), ..Self::pictures(schemas) }
            .with_examples(examples::image_edits())
            .with_form(&form)
    }

    /// The reply of either operation on pictures, whole or as events.
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

    /// With `stream` the reply is a stream of such events.
    fn with_events(mut self, event: &Value) -> Self {
        self.reply.insert("text/event-stream".to_owned(), json!({ "schema": event }));
        self
    }

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

fn json(schema: &Value) -> Map<String, Value> {
    Map::from_iter([(JSON.to_owned(), json!({ "schema": schema }))])
}

/// The schema of one server-sent event whose name is the `type` of its data.
///
/// OpenAPI 3.1 leaves open what the schema of a stream describes. As 3.2 has it for `itemSchema` (§4.14.4), it is one
/// event as an object of its fields.
fn named_events(name: &str, event: &Value, schemas: &mut Schemas) -> Value {
    let mut data = content(event);
    data["type"] = "string".into();
    let event = json!({
        "description": "An event; its name is the `type` of its data.",
        "type": "object",
        "properties": { "event": { "type": "string" }, "data": data },
        "required": ["event", "data"],
    });
    schemas.named(name, event)
}

/// A string that holds the JSON text of such a value.
fn content(schema: &Value) -> Value {
    json!({ "contentMediaType": JSON, "contentSchema": schema })
}

const JSON: &str = "application/json";
