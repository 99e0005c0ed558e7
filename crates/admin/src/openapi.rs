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
use operation::Operation;
use serde_json::{Map, Value, json};

pub use self::admin::document as admin_document;

/// Builds the OpenAPI 3.1 document.
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    let operations = operations(&mut schemas);
    let mut paths = Map::new();
    let mut responses = Map::new();
    for operation in &operations {
        let method = operation.method().to_ascii_lowercase();
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[method] = operation.describe(&mut responses);
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

/// The operations, in the order of the document.
fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let responses = Exchange::responses(schemas);
    let chat = Exchange::chat(schemas);
    let messages = Exchange::messages(schemas);
    let count = Exchange::count_tokens(schemas);
    let generations = Exchange::image_generations(schemas);
    let edits = Exchange::image_edits(schemas);
    let stored = stored_responses(schemas);
    let list = Exchange::reply::<catalog::List>(schemas, "Models");
    let model = Exchange::reply::<catalog::Entry>(schemas, "Models");
    let openai_error = schemas.written::<wire::ErrorBody>("");
    let messages_error = schemas.written::<messages::ErrorBody>("Messages");
    let of = |endpoint, path, id, summary, exchange| {
        let error = operation::error(path, &openai_error, &messages_error);
        Operation {
            endpoint,
            path,
            id,
            summary,
            exchange,
            error,
        }
    };
    let counting = "How many tokens a message's prompt has";
    let any_model = Endpoint::Model("{id}".to_owned());
    let stored = stored
        .map(|(endpoint, path, id, summary, exchange)| of(endpoint, path, id, summary, exchange));
    let mut all = vec![of(
        Endpoint::Responses,
        "/v1/responses",
        "createResponse",
        "A model's response",
        responses,
    )];
    all.extend(stored);
    all.extend([
        of(
            Endpoint::Chat,
            "/v1/chat/completions",
            "createChatCompletion",
            "A chat completion",
            chat,
        ),
        of(
            Endpoint::Messages,
            "/v1/messages",
            "createMessage",
            "A message",
            messages,
        ),
        of(
            Endpoint::CountTokens,
            "/v1/messages/count_tokens",
            "countTokens",
            counting,
            count,
        ),
        of(
            Endpoint::ImageGenerations,
            "/v1/images/generations",
            "createImage",
            "Pictures from a prompt",
            generations,
        ),
        of(
            Endpoint::ImageEdits,
            "/v1/images/edits",
            "createImageEdit",
            "Pictures from pictures",
            edits,
        ),
        of(
            Endpoint::Models,
            "/v1/models",
            "listModels",
            "The models that the key may use",
            list,
        ),
        of(
            any_model,
            "/v1/models/{id}",
            "retrieveModel",
            "One model",
            model,
        ),
    ]);
    all
}

/// The operations on a single response: endpoint, path, id, summary and bodies.
fn stored_responses(
    schemas: &mut Schemas,
) -> [(Endpoint, &'static str, &'static str, &'static str, Exchange); 4] {
    let response = Exchange::reply::<responses::Response>(schemas, "Responses");
    let cancelled = Exchange::reply::<responses::Response>(schemas, "Responses");
    let deleted = Exchange::reply::<Deleted>(schemas, "Responses");
    let items = Exchange::reply::<ItemList>(schemas, "Responses");
    let id = || "{id}".to_owned();
    [
        (
            Endpoint::Response(id()),
            "/v1/responses/{id}",
            "getResponse",
            "A response that is kept",
            response,
        ),
        (
            Endpoint::DeleteResponse(id()),
            "/v1/responses/{id}",
            "deleteResponse",
            "A response to be deleted",
            deleted,
        ),
        (
            Endpoint::CancelResponse(id()),
            "/v1/responses/{id}/cancel",
            "cancelResponse",
            "A response in the background to be cancelled",
            cancelled,
        ),
        (
            Endpoint::InputItems(id()),
            "/v1/responses/{id}/input_items",
            "listInputItems",
            "The items that a response answers",
            items,
        ),
    ]
}

#[cfg(test)]
mod tests;
