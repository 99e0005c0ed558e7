//! The list of models, in a form that the clients of both vendors accept.

use serde_json::{Value, json};

use super::{Failure, Reply};

pub(super) fn list() -> Reply {
    let data: Vec<Value> = MODELS.iter().map(|id| entry(id)).collect();
    let body = json!({
        "object": "list", "data": data, "has_more": false, "first_id": MODELS.first(), "last_id": MODELS.last(),
    });
    Reply::Json(200, body)
}

pub(super) fn one(id: &str) -> Result<Reply, Failure> {
    if MODELS.contains(&id) {
        return Ok(Reply::Json(200, entry(id)));
    }
    let message = format!("The model '{id}' does not exist.");
    Err(Failure {
        status: 404,
        code: "model_not_found",
        param: Some("model"),
        message,
    })
}

fn entry(id: &str) -> Value {
    json!({
        "id": id, "object": "model", "created": 1_786_000_000, "owned_by": "simulator",
        "type": "model", "display_name": id, "created_at": "2026-08-06T07:06:40Z", "lifecycle": "active",
    })
}

/// The listed models. Requests for any other model are accepted as well.
const MODELS: &[&str] = &["honest", "honest-image"];
