//! The admin API: keys, usage and limits as JSON under `/admin/v1`, on the admin address.

pub(crate) mod about;
mod audit;
pub(crate) mod body;
mod changes;
pub(crate) mod failure;
mod keys;
mod limits;
mod live;
mod models;
pub(crate) mod operation;
pub(crate) mod operations;
pub(crate) mod parameters;
mod prices;
mod requests;
mod route;
mod rows;
#[cfg(test)]
mod tests;
mod upstreams;
mod usage;
pub(crate) mod values;

use std::sync::Arc;

use accounting::{By, StoredKey};
use bytes::Bytes;
use gateway::connection::client_body::ClientBody;
use gateway::exchange::body::{Body, whole};
use gateway::state::GatewayState;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use policy::accounting::Accounting;
use policy::clock;
use serde::Serialize;

pub use self::about::About;
use self::failure::Failure;
use self::parameters::Parameters;
use crate::access::{AdminAccess, NoAccess};

/// A request of an administrator whose key was valid.
pub(crate) struct AdminRequest<'a> {
    state: &'a Arc<GatewayState>,
    about: &'a About,
    /// The author of changes, for the audit log.
    actor: String,
    /// The id in the path; empty for an operation without one.
    id: &'a str,
    parameters: Parameters,
    body: Bytes,
}

/// The result of an operation.
pub(crate) type Answer = Result<Response<Body>, Failure>;

/// Returns true if a path belongs to the admin API.
pub(crate) fn is_path(path: &str) -> bool {
    path.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request for a path of the admin API.
pub(crate) async fn answer(
    state: &Arc<GatewayState>,
    access: &AdminAccess,
    about: &About,
    request: Request<ClientBody>,
) -> Response<Body> {
    let mut response = match respond(state, access, about, request).await {
        Ok(response) => response,
        Err(failure) => failure.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Checks the host, the key and the path, in this order, and performs the requested operation.
async fn respond(
    state: &Arc<GatewayState>,
    access: &AdminAccess,
    about: &About,
    request: Request<ClientBody>,
) -> Answer {
    if let Err(reason) = access.check(request.headers(), request.method()) {
        log_refusal(&reason, request.uri().path());
        return Err(reason.into());
    }
    let (head, body) = request.into_parts();
    let (found, id) = route::find(&head.method, head.uri.path())?;
    let mut body = body::read(body, &head.headers, state).await?;
    let operation = &found.description;
    match operation.body {
        None if !body.is_empty() => return Err(Failure::unexpected_body(&head.method)),
        Some(_) if operation.is_body_optional && body.is_empty() => body = "{}".into(),
        _ => {}
    }
    let query = head.uri.query().unwrap_or_default();
    let request = AdminRequest {
        state,
        about,
        actor: actor(&head.headers),
        id,
        parameters: Parameters::parse(query, operation.parameters)?,
        body,
    };
    let mut response = (found.handler)(&request).await?;
    *response.status_mut() = operation.status;
    Ok(response)
}

impl AdminRequest<'_> {
    /// The store of keys and usage, which most operations need.
    fn accounting(&self) -> Result<&Accounting, Failure> {
        self.state
            .accounting
            .as_deref()
            .ok_or_else(Failure::no_store)
    }

    fn by(&self) -> By {
        By {
            actor: self.actor.clone(),
            at: clock::unix_seconds(),
        }
    }

    /// Logs a change of a key that is stored, and reads the keys again, so that it applies here when
    /// its answer arrives. If the store has gone away since then, it applies after the next renewal.
    async fn note(&self, action: &'static str, key: &StoredKey) {
        let StoredKey { id, name, .. } = key;
        let actor = &self.actor;
        tracing::info!(
            action,
            id,
            key = name,
            actor,
            "a key of the store has changed"
        );
        let Ok(accounting) = self.accounting() else {
            return;
        };
        if let Err(error) = accounting.renew_keys(&self.state.policies).await {
            tracing::error!(%error, "a change of keys is stored, and applies when the store is back");
        }
    }
}

/// Logs a request that may come from somebody who tries to get access.
fn log_refusal(reason: &NoAccess, path: &str) {
    let path = wire::truncate_for_error(path);
    match reason {
        NoAccess::Host => tracing::warn!(%path, "an admin request was refused: wrong host"),
        NoAccess::Origin => tracing::warn!(%path, "an admin request was refused: wrong origin"),
        NoAccess::Key(_) => tracing::warn!(%path, "an admin request was refused: wrong key"),
        // A setting, not an attempt.
        NoAccess::Disabled => {}
    }
}

/// Returns the author of a change, if the request names one that is safe to log.
fn actor(headers: &HeaderMap) -> String {
    let named = headers.get(ACTOR).and_then(|value| value.to_str().ok());
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_-.@".contains(c);
    named
        .filter(|name| (1..=64).contains(&name.len()) && name.chars().all(is_safe))
        .unwrap_or("admin")
        .to_owned()
}

/// Returns a response with `value` as JSON.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).map_err(Failure::internal)?;
    Ok(response("application/json", whole(body.into())))
}

fn response(media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// The beginning of all paths.
const PREFIX: &str = "/admin/v1";
const ACTOR: HeaderName = HeaderName::from_static("x-sluicegate-actor");
