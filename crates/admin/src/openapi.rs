//! The OpenAPI document of the served API, derived from the types that parse the requests and
//! serialize the responses.
//!
//! It lists every possible status of each operation with media type, headers and schema, so that
//! the running gateway can be tested against it: see `cargo xtask schemathesis`.

mod admin;
mod examples;
mod exchange;
mod failures;
mod form;
mod operation;

use crate::schemas::Schemas;
use exchange::Exchange;
use gateway::endpoints::stored_response::{Deleted, ItemList};
use gateway::request::routing::Endpoint;
use operation::{Operation, operation};
use serde_json::{Map, Value, json};

pub use self::admin::document as admin_document;

/// Builds the OpenAPI 3.1 document.
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    let operations = operations(&mut schemas);
    let openai_error = schemas.written::<wire::ErrorBody>("");
    let messages_error = schemas.written::<messages::ErrorBody>("Messages");
    let mut paths = Map::new();
    let mut responses = Map::new();
    for operation in &operations {
        let method = operation.method().to_ascii_lowercase();
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        let error = operation::error(operation.path, &openai_error, &messages_error);
        path[method] = operation.describe(&error, &mut responses);
    }
    json!({
        "openapi": "3.1.0",
        "info": info(),
        "servers": [{ "url": "http://127.0.0.1:8080", "description": "Where it listens without a configuration." }],
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": schemas.all,
            "responses": responses,
            "headers": failures::headers(),
            "securitySchemes": security_schemes(),
        },
    })
}

fn info() -> Value {
    json!({
        "title": "Sluicegate",
        "version": env!("CARGO_PKG_VERSION"),
        "summary": env!("CARGO_PKG_DESCRIPTION"),
        "description": "One gate for every model protocol. Fields that are not described here are kept and not refused; \
            `null` is the same as absent in a request. Each request is also held to rules that a schema cannot express: \
            what breaks one is refused with status 400, every finding with its path.",
        "license": { "name": "MIT OR Apache-2.0", "identifier": env!("CARGO_PKG_LICENSE") },
    })
}

fn tags() -> Value {
    json!([
        { "name": operation::TEXT, "description": "Answers of text models." },
        { "name": operation::MESSAGES, "description": "Answers of message models, and their prompts counted." },
        { "name": operation::IMAGES, "description": "Pictures from prompts and from other pictures." },
        { "name": operation::MODELS, "description": "Which models there are." },
    ])
}

fn security_schemes() -> Value {
    json!({
        (operation::BEARER): { "type": "http", "scheme": "bearer", "description": "A key of the gateway." },
        (operation::API_KEY): {
            "type": "apiKey",
            "in": "header",
            "name": "x-api-key",
            "description": "The same key, as clients of Messages send it.",
        },
    })
}

/// Returns the operations, in the order of the document.
fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    // Types of requests are added first: see `Schemas`.
    let [responses, others @ ..] = operations_with_body(schemas);
    let of_response = operations_on_response(schemas);
    let of_models = operations_on_models(schemas);
    let all = [responses].into_iter().chain(of_response);
    all.chain(others).chain(of_models).collect()
}

fn operations_with_body(schemas: &mut Schemas) -> [Operation; 7] {
    [
        operation(Endpoint::Responses, "/v1/responses")
            .named("createResponse", "A model's response")
            .with(Exchange::responses(schemas)),
        operation(Endpoint::InputTokens, "/v1/responses/input_tokens")
            .named(
                "countInputTokens",
                "How many tokens a response's prompt has",
            )
            .with(Exchange::input_tokens(schemas)),
        operation(Endpoint::Chat, "/v1/chat/completions")
            .named("createChatCompletion", "A chat completion")
            .with(Exchange::chat(schemas)),
        operation(Endpoint::Messages, "/v1/messages")
            .named("createMessage", "A message")
            .with(Exchange::messages(schemas)),
        operation(Endpoint::CountTokens, "/v1/messages/count_tokens")
            .named("countTokens", "How many tokens a message's prompt has")
            .with(Exchange::count_tokens(schemas)),
        operation(Endpoint::ImageGenerations, "/v1/images/generations")
            .named("createImage", "Pictures from a prompt")
            .with(Exchange::image_generations(schemas)),
        operation(Endpoint::ImageEdits, "/v1/images/edits")
            .named("createImageEdit", "Pictures from pictures")
            .with(Exchange::image_edits(schemas)),
    ]
}

fn operations_on_response(schemas: &mut Schemas) -> [Operation; 4] {
    let id = || "{id}".to_owned();
    [
        operation(Endpoint::Response(id()), "/v1/responses/{id}")
            .named("getResponse", "A response that is kept")
            .with(Exchange::reply::<responses::Response>(schemas, "Responses")),
        operation(Endpoint::DeleteResponse(id()), "/v1/responses/{id}")
            .named("deleteResponse", "A response to be deleted")
            .with(Exchange::reply::<Deleted>(schemas, "Responses")),
        operation(Endpoint::CancelResponse(id()), "/v1/responses/{id}/cancel")
            .named(
                "cancelResponse",
                "A response in the background to be cancelled",
            )
            .with(Exchange::reply::<responses::Response>(schemas, "Responses")),
        operation(Endpoint::InputItems(id()), "/v1/responses/{id}/input_items")
            .named("listInputItems", "The items that a response answers")
            .with(Exchange::reply::<ItemList>(schemas, "Responses")),
    ]
}

fn operations_on_models(schemas: &mut Schemas) -> [Operation; 2] {
    [
        operation(Endpoint::Models, "/v1/models")
            .named("listModels", "The models that the key may use")
            .with(Exchange::reply::<catalog::List>(schemas, "Models")),
        operation(Endpoint::Model("{id}".to_owned()), "/v1/models/{id}")
            .named("retrieveModel", "One model")
            .with(Exchange::reply::<catalog::Entry>(schemas, "Models")),
    ]
}

#[cfg(test)]
mod tests;
