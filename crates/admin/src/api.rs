//! The admin API: keys, usage and limits as JSON under `/admin/v1`, on the admin address.

pub(crate) mod audit;
mod body;
mod failure;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod parameters;
pub(crate) mod prices;
pub(crate) mod route;
pub(crate) mod rows;
#[cfg(test)]
mod tests;
pub(crate) mod usage;
pub(crate) mod values;

use accounting::{By, StoredKey};
use gateway::exchange::body::{Body, ClientBody, whole};
use gateway::state::GatewayState;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use policy::accounting::Accounting;
use policy::clock;
use serde::Serialize;

use self::failure::Failure;
use self::route::Route;
use crate::access::{AdminAccess, NoAccess};

/// A request of an administrator whose key was valid.
struct AdminRequest<'a> {
    state: &'a GatewayState,
    accounting: &'a Accounting,
    /// The author of changes, for the audit log.
    actor: String,
    /// The query of the request.
    query: &'a str,
}

/// The result of an operation.
type Answer = Result<Response<Body>, Failure>;

/// Returns true if a path belongs to the admin API.
pub(crate) fn is_path(path: &str) -> bool {
    path.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request for a path of the admin API.
pub(crate) async fn answer(
    state: &GatewayState,
    access: &AdminAccess,
    request: Request<impl ClientBody>,
) -> Response<Body> {
    let mut response = match respond(state, access, request).await {
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
    state: &GatewayState,
    access: &AdminAccess,
    request: Request<impl ClientBody>,
) -> Answer {
    if let Err(reason) = access.check(request.headers()) {
        log_refusal(&reason, request.uri().path());
        return Err(reason.into());
    }
    let Some(accounting) = &state.accounting else {
        return Err(Failure::no_store());
    };
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let route = Route::of(path).ok_or_else(|| Failure::no_path(path))?;
    if !route.allows(&head.method) {
        return Err(Failure::method(&head.method, path, route.methods()));
    }
    let body = body::read(body, &head.headers, state).await?;
    let admin = AdminRequest {
        state,
        accounting,
        actor: actor(&head.headers),
        query: head.uri.query().unwrap_or_default(),
    };
    dispatch(&admin, route, &head.method, &body).await
}

async fn dispatch(
    admin: &AdminRequest<'_>,
    route: Route<'_>,
    method: &Method,
    body: &[u8],
) -> Answer {
    if !matches!(*method, Method::POST | Method::PATCH) && !body.is_empty() {
        return Err(Failure::unexpected_body(method));
    }
    match (route, method.as_str()) {
        (Route::Keys, "POST") => keys::create(admin, body).await,
        (Route::Keys, _) => keys::list(admin).await,
        (Route::Key(id), "PATCH") => keys::change(admin, id, body).await,
        (Route::Key(id), "DELETE") => keys::revoke(admin, id).await,
        (Route::Key(id), _) => keys::show(admin, id).await,
        (Route::Rotate(id), _) => keys::rotate(admin, id, body).await,
        (Route::Usage, _) => usage::sums(admin).await,
        (Route::Rows, _) => rows::export(admin).await,
        (Route::Request(id), _) => rows::request(admin, id).await,
        (Route::Limits, _) => limits::status(admin).await,
        (Route::Prices, _) => prices::list(admin),
        (Route::Audit, _) => audit::list(admin).await,
    }
}

impl AdminRequest<'_> {
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
        if let Err(error) = self.accounting.renew_keys(&self.state.policies).await {
            tracing::error!(%error, "a change of keys is stored, and applies when the store is back");
        }
    }
}

/// Logs a request that may come from somebody who tries to get access.
fn log_refusal(reason: &NoAccess, path: &str) {
    let path = wire::truncate_for_error(path);
    match reason {
        NoAccess::Host => tracing::warn!(%path, "an admin request was refused: wrong host"),
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
fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).map_err(|error| Failure::internal(error.to_string()))?;
    Ok(response(status, "application/json", whole(body.into())))
}

fn response(status: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// The beginning of all paths.
const PREFIX: &str = "/admin/v1";
const ACTOR: HeaderName = HeaderName::from_static("x-sluicegate-actor");
