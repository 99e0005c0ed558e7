//! The operations of the admin API. The router, the parameters and bodies of requests, and the
//! OpenAPI document come from this table.

use std::sync::LazyLock;

use http::StatusCode;
use serde_json::json;

use super::operation::{Operation, operation};
use super::{
    about, audit, changes, keys, limits, live, models, prices, requests, rows, upstreams, usage,
};
use crate::schemas::Schemas;

/// The operations, in the order of the OpenAPI document.
pub(crate) static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let keys = keys().into_iter();
    keys.chain(reports()).chain(state_of_gateway()).collect()
});

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

/// The operations about the running gateway, which need no store.
fn state_of_gateway() -> [Operation; 8] {
    [
        operation("GET /admin/v1/live", "listLive", "Requests in flight")
            .json(|request| Box::pin(live::list(request))),
        operation(
            "DELETE /admin/v1/live/{id}",
            "endRequest",
            "End a request in flight",
        )
        .json(|request| Box::pin(live::end(request))),
        operation(
            "GET /admin/v1/requests",
            "listRequests",
            "The last requests of this gateway",
        )
        .query(&requests::OF_REQUESTS)
        .json(|request| Box::pin(requests::list(request))),
        operation(
            "GET /admin/v1/requests/{id}/explain",
            "explainRequest",
            "Explain a request",
        )
        .json(|request| Box::pin(requests::explain(request))),
        operation(
            "GET /admin/v1/changes",
            "streamChanges",
            "Requests as they begin and end",
        )
        .stream(
            &[("text/event-stream", |_, _| json!({ "type": "string" }))],
            |request| Box::pin(changes::stream(request)),
        ),
        operation(
            "GET /admin/v1/upstreams",
            "listUpstreams",
            "Upstreams and their health",
        )
        .json(|request| Box::pin(upstreams::list(request))),
        operation(
            "GET /admin/v1/models",
            "listModels",
            "Models, their targets and the losses on the way",
        )
        .json(|request| Box::pin(models::list(request))),
        operation("GET /admin/v1/about", "showGateway", "The gateway")
            .json(|request| Box::pin(about::show(request))),
    ]
}
