//! The requests of the console to the public API. They take the way of all requests: the same checks,
//! limits, records and answers, with an API key like everybody's.

use std::sync::Arc;

use gateway::connection::client_body::ClientBody;
use gateway::connection::state::ConnectionState;
use gateway::service;
use gateway::state::GatewayState;
use http::Request;
use http::header::COOKIE;
use http::uri::{PathAndQuery, Uri};

use crate::api::Answer;
use crate::api::failure::Failure;

/// True if a path is one of the public API below `/play`.
pub(crate) fn is_path(path: &str) -> bool {
    path.starts_with("/play/v1/")
}

/// Answers a request of the console to the public API.
pub(crate) async fn answer(
    state: &Arc<GatewayState>,
    mut request: Request<ClientBody>,
    connection: &Arc<ConnectionState>,
) -> Answer {
    *request.uri_mut() = public(request.uri())?;
    // The cookie is for this address only.
    request.headers_mut().remove(COOKIE);
    Ok(service::answer(state, request, connection).await)
}

/// The address of the public API: without `/play`.
fn public(uri: &Uri) -> Result<Uri, Failure> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let public = path.strip_prefix("/play").unwrap_or(path);
    public
        .parse()
        .map_err(|_| Failure::no_path(uri.path(), "the paths of the public API below /play"))
}
