//! The OpenAPI document of the admin API, derived from the types of its requests and responses.

use serde_json::{Map, Value, json};

use super::operation::parameter;
use crate::api::operation::Description;
use crate::api::operations::OPERATIONS;
use crate::api::parameters::{Kind, Parameter};
use crate::schemas::Schemas;

/// Builds the OpenAPI 3.1 document.
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    let operations = || OPERATIONS.iter().map(|operation| &operation.description);
    // Bodies of requests come first: see `Schemas`.
    for add in operations().filter_map(|operation| operation.body) {
        add(&mut schemas, "");
    }
    let mut paths = Map::new();
    for operation in operations() {
        let method = operation.method.to_ascii_lowercase();
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[method] = describe(operation, &mut schemas);
    }
    let error = schemas.written::<wire::ErrorBody>("");
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sluicegate admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Keys, usage and limits of a gateway with a store, on its admin address.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": env!("CARGO_PKG_LICENSE") },
        },
        "servers": [{ "url": "http://127.0.0.1:9090", "description": "The admin address." }],
        "security": [{ "admin": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.all,
            "responses": failures(&error),
            "securitySchemes": {
                "admin": { "type": "http", "scheme": "bearer", "description": "The admin key." },
            },
        },
    })
}

/// Returns the operation object.
fn describe(operation: &Description, schemas: &mut Schemas) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters(operation),
        "responses": responses(operation, schemas),
    });
    if let Some(add) = operation.body {
        let content = json!({ "application/json": { "schema": add(schemas, "") } });
        let required = !operation.is_body_optional;
        described["requestBody"] = json!({ "required": required, "content": content });
    }
    described
}

fn parameters(operation: &Description) -> Vec<Value> {
    let mut all: Vec<_> = operation.parameters.iter().map(query_parameter).collect();
    if operation.path.contains("{id}") {
        let schema = json!({ "type": "string", "pattern": "^[^/]+$" });
        all.push(parameter("path", "id", "The id.", &schema));
    }
    if operation.method != "GET" {
        let schema = json!({ "type": "string", "pattern": "^[0-9A-Za-z_.@-]{1,64}$" });
        all.push(parameter("header", "x-sluicegate-actor", ACTOR, &schema));
    }
    all
}

fn responses(operation: &Description, schemas: &mut Schemas) -> Value {
    let of_body: &[_] = match operation.body {
        Some(_) => &["408", "413", "415"],
        None => &[],
    };
    let failures = ALWAYS.iter().chain(of_body).chain(operation.failures);
    let failures = failures.map(|status| {
        let reference = json!({ "$ref": format!("#/components/responses/{status}") });
        ((*status).to_owned(), reference)
    });
    let mut all: Map<_, _> = failures.collect();
    let replies = operation.replies.iter();
    let content = replies.map(|(name, add)| (*name, json!({ "schema": add(schemas, "") })));
    let content: Value = content.collect();
    let success = json!({ "description": "Success.", "content": content });
    all.insert(operation.status.as_str().to_owned(), success);
    all.sort_keys();
    all.into()
}

/// Returns the failures by status. Their bodies have the schema `error`.
fn failures(error: &Value) -> Value {
    let failure = |description| {
        let content = json!({ "application/json": { "schema": error } });
        json!({ "description": description, "content": content })
    };
    json!({
        "400": failure("A field, a parameter or the body is not valid. The error names it."),
        "401": failure("The admin key is missing or not valid."),
        "404": failure("There is no such path, key or request, or no admin API."),
        "405": failure("The path does not support this method."),
        "408": failure("The body did not arrive in time."),
        "409": failure("Another key has the name."),
        "413": failure("The body is larger than 64 KiB."),
        "415": failure("The body is compressed."),
        "421": failure("The header `Host` is not of this gateway."),
        "500": failure("An internal error of the gateway."),
        "503": failure("The store is not available just now."),
    })
}

fn query_parameter(declared: &Parameter) -> Value {
    let schema = match declared.kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Time => json!({ "type": "string", "format": "date-time" }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Words(words) => json!({ "type": "array", "items": { "enum": words } }),
        Kind::Number => json!({ "type": "integer", "minimum": 1 }),
    };
    let mut described = parameter("query", declared.name, declared.description, &schema);
    if matches!(declared.kind, Kind::Words(_)) {
        described["style"] = json!("form");
        described["explode"] = json!(false);
    }
    described
}

/// The failures of every operation.
const ALWAYS: [&str; 7] = ["400", "401", "404", "405", "421", "500", "503"];
const ACTOR: &str = "The author of the change in the audit log. Default: admin.";

#[cfg(test)]
mod tests;
