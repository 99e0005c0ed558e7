//! The requests in flight, and the end of one.

use schemars::JsonSchema;
use serde::Serialize;
use telemetry::requests::live::LiveView;

use super::AdminRequest;
use super::failure::Failure;

/// The requests in flight.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LiveRequestList {
    /// The requests in flight, oldest first.
    pub(super) requests: Vec<LiveView>,
}

/// A request that an operator has ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EndedRequest {
    /// The id of the request.
    request_id: String,
}

/// Lists the requests in flight.
pub(super) async fn list(admin: &AdminRequest<'_>) -> Result<LiveRequestList, Failure> {
    let requests = admin.state.live.list();
    Ok(LiveRequestList { requests })
}

/// Ends a request in flight.
pub(super) async fn end(admin: &AdminRequest<'_>) -> Result<EndedRequest, Failure> {
    let id = admin.id;
    if !admin.state.end_request(id) {
        let id = wire::truncate_for_error(id);
        return Err(Failure::not_found(format!(
            "id: no request '{id}' is in flight"
        )));
    }
    let actor = &admin.actor;
    tracing::info!(id, actor, "an operator has ended a request");
    let request_id = id.to_owned();
    Ok(EndedRequest { request_id })
}
