//! The OpenAPI document of what is served, made from the very types that read the requests.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The document, OpenAPI 3.1.
pub(crate) fn document() -> Value {
    let mut schemas = Map::new();
    let responses =
        Exchange::of::<responses::Request, responses::Response, responses::Event>("Responses", &mut schemas);
    let chat = Exchange::of::<chat::Request, chat::Completion, chat::Chunk>("Chat", &mut schemas);
    let messages = Exchange::of::<messages::Request, messages::Message, messages::Event>("Messages", &mut schemas);
    let generation = reference::<images::Generation>("Images", &mut schemas);
    let edit = reference::<images::Edit>("Images", &mut schemas);
    let error = reference::<wire::ErrorBody>("", &mut schemas);
    let messages_error = reference::<messages::ErrorBody>("Messages", &mut schemas);
    let paths = json!({
        "/v1/responses": { "post": responses.operation("createResponse", "A model's response", &error) },
        "/v1/chat/completions": { "post": chat.operation("createChatCompletion", "A chat completion", &error) },
        "/v1/messages": { "post": messages.operation("createMessage", "A message", &messages_error) },
        "/v1/messages/count_tokens": { "post": messages.count_tokens(&messages_error) },
        "/v1/images/generations": { "post": post("createImage", "Pictures from a prompt", &generation, &error) },
        "/v1/images/edits": { "post": post("createImageEdit", "Pictures from pictures", &edit, &error) },
        "/v1/models": { "get": plain("listModels", "The models that the key may use", &error) },
        "/v1/models/{id}": { "get": model(&error) },
    });
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Sluicegate", "version": env!("CARGO_PKG_VERSION") },
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": { "schemas": schemas, "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } } },
    })
}

/// What goes to and fro at one path: references to the schemas.
struct Exchange {
    request: Value,
    reply: Value,
    event: Value,
}

impl Exchange {
    fn of<Request: JsonSchema, Reply: JsonSchema, Event: JsonSchema>(
        prefix: &str,
        schemas: &mut Map<String, Value>,
    ) -> Self {
        Self {
            request: reference::<Request>(prefix, schemas),
            reply: reference::<Reply>(prefix, schemas),
            event: reference::<Event>(prefix, schemas),
        }
    }

    fn operation(&self, id: &str, summary: &str, error: &Value) -> Value {
        json!({
            "operationId": id,
            "summary": summary,
            "requestBody": { "required": true, "content": { "application/json": { "schema": self.request } } },
            "responses": {
                "200": {
                    "description": "The reply, or with `stream` its events.",
                    "content": {
                        "application/json": { "schema": self.reply },
                        "text/event-stream": { "schema": self.event },
                    },
                },
                "default": failure(error),
            },
        })
    }

    /// The same request, of which only the prompt's tokens are counted.
    fn count_tokens(&self, error: &Value) -> Value {
        post("countTokens", "How many tokens a message's prompt has", &self.request, error)
    }
}

fn model(error: &Value) -> Value {
    let mut operation = plain("retrieveModel", "One model", error);
    operation["parameters"] = json!([{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }]);
    operation
}

/// An operation that takes a body and whose reply is a plain object.
fn post(id: &str, summary: &str, request: &Value, error: &Value) -> Value {
    let mut operation = plain(id, summary, error);
    let content = json!({ "application/json": { "schema": request } });
    operation["requestBody"] = json!({ "required": true, "content": content });
    operation
}

/// An operation whose reply is a plain object.
fn plain(id: &str, summary: &str, error: &Value) -> Value {
    let reply = json!({ "application/json": { "schema": { "type": "object" } } });
    json!({
        "operationId": id,
        "summary": summary,
        "responses": { "200": { "description": summary, "content": reply }, "default": failure(error) },
    })
}

fn failure(error: &Value) -> Value {
    json!({ "description": "An error.", "content": { "application/json": { "schema": error } } })
}

/// A reference to the schema of `T`, which is put among `schemas` with all that it needs. Protocols have types of the
/// same name, so each name gets its protocol in front.
fn reference<T: JsonSchema>(prefix: &str, schemas: &mut Map<String, Value>) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = SCHEMAS.into());
    let mut generator = SchemaGenerator::new(settings);
    let mut schema = generator.subschema_for::<T>().to_value();
    rename(&mut schema, prefix);
    for (name, mut definition) in generator.take_definitions(true) {
        rename(&mut definition, prefix);
        schemas.insert(format!("{prefix}{name}"), definition);
    }
    schema
}

/// Puts `prefix` in front of every name that is referred to.
fn rename(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(target) if key == "$ref" => {
                        if let Some(name) = target.strip_prefix(REFERENCE) {
                            *target = format!("{REFERENCE}{prefix}{name}");
                        }
                    }
                    member => rename(member, prefix),
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| rename(entry, prefix)),
        _ => {}
    }
}

const SCHEMAS: &str = "/components/schemas";
const REFERENCE: &str = "#/components/schemas/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 100, "{}", references.len());
        for reference in references {
            let pointer = reference.strip_prefix('#').expect("references stay within the document");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    fn collect<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                into.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| collect(member, into));
            }
            Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, into)),
            _ => {}
        }
    }

    #[test]
    fn every_text_protocol_is_described() {
        let document = document();
        for (path, name) in [
            ("/v1/responses", "ResponsesRequest"),
            ("/v1/chat/completions", "ChatRequest"),
            ("/v1/messages", "MessagesRequest"),
        ] {
            let body = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
            assert_eq!(body["$ref"], format!("{REFERENCE}{name}"));
            assert!(document["components"]["schemas"][name]["properties"]["model"].is_object());
        }
    }
}
