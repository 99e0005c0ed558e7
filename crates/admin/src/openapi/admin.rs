//! The OpenAPI document of the admin API, derived from the types of its requests and responses.

use serde_json::{Map, Value, json};

use crate::api::parameters::{Kind, Parameter};
use crate::api::{audit, keys, limits, prices, rows, usage};
use crate::schemas::Schemas;

/// Builds the OpenAPI 3.1 document.
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    let operations = operations(&mut schemas);
    let error = schemas.written::<wire::ErrorBody>("");
    let mut paths = Map::new();
    for operation in &operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.describe();
    }
    let failures = FAILURES.map(|(status, description)| {
        let content = json!({ "application/json": { "schema": error } });
        let response = json!({ "description": description, "content": content });
        (status.to_owned(), response)
    });
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
            "responses": Map::from_iter(failures),
            "securitySchemes": {
                "admin": { "type": "http", "scheme": "bearer", "description": "The admin key." },
            },
        },
    })
}

/// An operation of the admin API.
struct Operation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    /// The schema of the body of a request, and true if there must be one.
    body: Option<(Value, bool)>,
    status: &'static str,
    /// The bodies of a success, by media type.
    reply: Map<String, Value>,
}

impl Operation {
    fn describe(&self) -> Value {
        let mut described = json!({
            "operationId": self.id,
            "summary": self.summary,
            "parameters": self.all_parameters(),
            "responses": self.responses(),
        });
        if let Some((schema, required)) = &self.body {
            let content = json!({ "application/json": { "schema": schema } });
            described["requestBody"] = json!({ "required": required, "content": content });
        }
        described
    }

    fn all_parameters(&self) -> Vec<Value> {
        let mut all: Vec<_> = self.parameters.iter().map(query_parameter).collect();
        if self.path.contains("{id}") {
            let schema = json!({ "type": "string", "pattern": "^[^/]+$" });
            all.push(parameter("path", "id", "The id.", &schema));
        }
        if self.method != "get" {
            let schema = json!({ "type": "string", "pattern": "^[0-9A-Za-z_.@-]{1,64}$" });
            all.push(parameter("header", "x-sluicegate-actor", ACTOR, &schema));
        }
        all
    }

    fn responses(&self) -> Value {
        let success = json!({ "description": "Success.", "content": self.reply });
        let of_body: &[_] = match self.body {
            Some(_) => &["408", "413", "415"],
            None => &[],
        };
        let of_names: &[_] = match self.id {
            "createKey" | "changeKey" => &["409"],
            _ => &[],
        };
        let always = ["400", "401", "404", "405", "421", "500", "503"];
        let failures = always.iter().chain(of_body).chain(of_names);
        let failures = failures.map(|status| {
            let reference = json!({ "$ref": format!("#/components/responses/{status}") });
            ((*status).to_owned(), reference)
        });
        let mut all: Map<_, _> = failures.collect();
        all.insert(self.status.to_owned(), success);
        all.sort_keys();
        all.into()
    }
}

/// The operations, in the order of the document.
fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let new = schemas.read::<keys::forms::NewKeyForm>("");
    let change = schemas.read::<keys::forms::KeyChangeForm>("");
    let rotation = schemas.read::<keys::forms::Rotation>("");
    let created = schemas.written::<keys::forms::Created>("");
    let key = schemas.written::<keys::forms::KeyView>("");
    let key_list = schemas.written::<keys::forms::KeyList>("");
    let sums = schemas.written::<usage::Usage>("");
    let row = schemas.written::<rows::Row>("");
    let limit_list = schemas.written::<limits::LimitList>("");
    let price_list = schemas.written::<prices::PriceList<'_>>("");
    let audit_page = schemas.written::<audit::AuditPage>("");
    let of = |method, path, id, summary, parameters, reply| Operation {
        method,
        path,
        id,
        summary,
        parameters,
        body: None,
        status: "200",
        reply: json_reply(&reply),
    };
    let (all, one, rotate) = (
        "/admin/v1/keys",
        "/admin/v1/keys/{id}",
        "/admin/v1/keys/{id}/rotate",
    );
    let mut exported = json_lines(&row);
    exported.insert(
        "text/csv".to_owned(),
        json!({ "schema": { "type": "string" } }),
    );
    let rows_path = "/admin/v1/usage/rows";
    vec![
        Operation {
            body: Some((new, true)),
            status: "201",
            ..of(
                "post",
                all,
                "createKey",
                "Create a key",
                &[],
                created.clone(),
            )
        },
        of(
            "get",
            all,
            "listKeys",
            "List keys",
            &keys::OF_LIST,
            key_list,
        ),
        of("get", one, "showKey", "Show a key", &[], key.clone()),
        Operation {
            body: Some((change, true)),
            ..of("patch", one, "changeKey", "Change a key", &[], key.clone())
        },
        of(
            "delete",
            one,
            "revokeKey",
            "Revoke a key",
            &keys::OF_REVOKE,
            key,
        ),
        Operation {
            body: Some((rotation, false)),
            ..of(
                "post",
                rotate,
                "rotateKey",
                "Replace a key by a new one",
                &[],
                created,
            )
        },
        of(
            "get",
            "/admin/v1/usage",
            "sumUsage",
            "Sums of usage",
            &usage::OF_USAGE,
            sums,
        ),
        Operation {
            reply: exported,
            ..of(
                "get",
                rows_path,
                "exportUsage",
                "Export rows of usage",
                &rows::OF_ROWS,
                json!({}),
            )
        },
        of(
            "get",
            "/admin/v1/requests/{id}",
            "showRequest",
            "The usage of a request",
            &[],
            row,
        ),
        of(
            "get",
            "/admin/v1/limits",
            "listLimits",
            "Limits that are in use",
            &limits::OF_LIMITS,
            limit_list,
        ),
        of(
            "get",
            "/admin/v1/prices",
            "listPrices",
            "Prices of models",
            &[],
            price_list,
        ),
        of(
            "get",
            "/admin/v1/audit",
            "listAudit",
            "Changes of keys",
            &audit::OF_AUDIT,
            audit_page,
        ),
    ]
}

fn json_reply(schema: &Value) -> Map<String, Value> {
    Map::from_iter([("application/json".to_owned(), json!({ "schema": schema }))])
}

/// Returns the form of an export of rows. The schema describes each line.
fn json_lines(row: &Value) -> Map<String, Value> {
    Map::from_iter([("application/jsonl".to_owned(), json!({ "schema": row }))])
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

fn parameter(place: &str, name: &str, description: &str, schema: &Value) -> Value {
    let required = place == "path";
    json!({ "name": name, "in": place, "description": description, "required": required, "schema": schema })
}

const ACTOR: &str = "The author of the change in the audit log. Default: admin.";

/// The failures, by status.
const FAILURES: [(&str, &str); 11] = [
    (
        "400",
        "A field, a parameter or the body is not valid. The error names it.",
    ),
    ("401", "The admin key is missing or not valid."),
    (
        "404",
        "There is no such path, key or request, or no admin API.",
    ),
    ("405", "The path does not support this method."),
    ("408", "The body did not arrive in time."),
    ("409", "Another key has the name."),
    ("413", "The body is larger than 64 KiB."),
    ("415", "The body is compressed."),
    ("421", "The header `Host` is not of this gateway."),
    ("500", "An internal error of the gateway."),
    ("503", "The store is not available just now."),
];

#[cfg(test)]
mod tests;
