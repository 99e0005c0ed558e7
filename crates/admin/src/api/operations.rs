//! The operations of the admin API. The router, the parameters and bodies of requests, and the
//! OpenAPI document come from this table.

use std::sync::LazyLock;

use http::StatusCode;
use serde_json::json;

use super::operation::{Operation, operation};
use super::{audit, keys, limits, prices, rows, usage};
use crate::schemas::Schemas;

/// The operations, in the order of the OpenAPI document.
pub(crate) static OPERATIONS: LazyLock<Vec<Operation>> =
    LazyLock::new(|| keys().into_iter().chain(reports()).collect());

fn keys() -> [Operation; 6] {
    [
        operation("POST /admin/v1/keys", "createKey", "Create a key")
            .status(StatusCode::CREATED)
            .failures(&["409"])
            .json_from_body(|request, body| Box::pin(keys::create(request, body))),
        operation("GET /admin/v1/keys/{id}", "showKey", "Show a key")
            .json(|request| Box::pin(keys::show(request))),
        operation("GET /admin/v1/keys", "listKeys", "List keys")
            .query(&keys::OF_LIST)
            .json(|request| Box::pin(keys::list(request))),
        operation("PATCH /admin/v1/keys/{id}", "changeKey", "Change a key")
            .failures(&["409"])
            .json_from_body(|request, body| Box::pin(keys::change(request, body))),
        operation("DELETE /admin/v1/keys/{id}", "revokeKey", "Revoke a key")
            .query(&keys::OF_REVOKE)
            .json(|request| Box::pin(keys::revoke(request))),
        operation(
            "POST /admin/v1/keys/{id}/rotate",
            "rotateKey",
            "Replace a key by a new one",
        )
        .optional_body()
        .json_from_body(|request, body| Box::pin(keys::rotate(request, body))),
    ]
}

fn reports() -> [Operation; 6] {
    [
        operation("GET /admin/v1/usage", "sumUsage", "Sums of usage")
            .query(&usage::OF_USAGE)
            .json(|request| Box::pin(usage::sums(request))),
        operation(
            "GET /admin/v1/usage/rows",
            "exportUsage",
            "Export rows of usage",
        )
        .query(&rows::OF_ROWS)
        // The schema of JSON lines describes each line.
        .stream(
            &[
                ("application/jsonl", Schemas::written::<rows::Row>),
                ("text/csv", |_, _| json!({ "type": "string" })),
            ],
            |request| Box::pin(rows::export(request)),
        ),
        operation(
            "GET /admin/v1/requests/{id}",
            "showRequest",
            "The usage of a request",
        )
        .json(|request| Box::pin(rows::request(request))),
        operation(
            "GET /admin/v1/limits",
            "listLimits",
            "Limits that are in use",
        )
        .query(&limits::OF_LIMITS)
        .json(|request| Box::pin(limits::status(request))),
        operation("GET /admin/v1/prices", "listPrices", "Prices of models")
            .json(|request| Box::pin(prices::list(request))),
        operation("GET /admin/v1/audit", "listAudit", "Changes of keys")
            .query(&audit::OF_AUDIT)
            .json(|request| Box::pin(audit::list(request))),
    ]
}
