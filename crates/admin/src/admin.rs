//! The admin address: `/livez`, `/readyz` and `/metrics`, which need no key, and the admin API. It
//! is loopback by default.

use std::sync::Arc;

use gateway::connection::client_body::ClientBody;
use gateway::connection::state::ConnectionState;
use gateway::exchange::body::{Body, whole};
use gateway::state::GatewayState;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};

use crate::access::AdminAccess;
use crate::api::{self, About};
use crate::console::{self, Console, PlayKey};

/// The admin address of a gateway.
pub struct Admin {
    /// The state of the gateway.
    pub state: Arc<GatewayState>,
    /// The rules of access.
    pub access: AdminAccess,
    /// The API keys that the gateway has made for its run, for the console.
    pub play_keys: Vec<PlayKey>,
    /// True if the address has TLS.
    pub is_secure: bool,
    /// The version, features and addresses of the gateway.
    pub about: About,
}

impl Admin {
    /// Answers a request to the admin address, received on `connection`.
    pub async fn answer(
        &self,
        request: Request<ClientBody>,
        connection: &Arc<ConnectionState>,
    ) -> Response<Body> {
        match request.uri().path() {
            path if api::is_path(path) => {
                api::answer(&self.state, &self.access, &self.about, request).await
            }
            path if console::is_path(path) => self.console().answer(request, connection).await,
            _ => probe(self, &request),
        }
    }

    fn console(&self) -> Console<'_> {
        Console {
            state: &self.state,
            access: &self.access,
            play_keys: &self.play_keys,
            is_secure: self.is_secure,
        }
    }
}

fn probe<B>(admin: &Admin, request: &Request<B>) -> Response<Body> {
    let state = &*admin.state;
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let (status, text) = match request.uri().path() {
        _ if !admin.access.admits_probe(request.headers()) => {
            (StatusCode::MISDIRECTED_REQUEST, WRONG_HOST.to_owned())
        }
        "/livez" | "/readyz" | "/metrics" if !is_read => {
            (StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned())
        }
        "/readyz" if state.lifecycle.is_stopping() => {
            (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned())
        }
        "/livez" => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => readiness(state),
        "/metrics" => return answer(StatusCode::OK, METRICS, state.render_metrics()),
        _ => (StatusCode::NOT_FOUND, NO_PATH.to_owned()),
    };
    let mut response = answer(status, TEXT, text);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

fn answer(status: StatusCode, media_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(whole(text.into()));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// Whether requests can be served as far as their usage is concerned. Lost usage of earlier requests
/// is named, and requests go on.
fn readiness(state: &GatewayState) -> (StatusCode, String) {
    let Some(accounting) = &state.accounting else {
        return (StatusCode::OK, "ok\n".to_owned());
    };
    match (accounting.journal_failure(), accounting.lost_usage()) {
        (Some(failure), _) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the journal of usage cannot be written: {failure}\n"),
        ),
        (None, Some(lost)) => (StatusCode::OK, format!("ok\n{lost}\n")),
        (None, None) => (StatusCode::OK, "ok\n".to_owned()),
    }
}

const WRONG_HOST: &str =
    "the Host is neither an address, nor localhost, nor in state.admin_hosts\n";
const NO_PATH: &str = "there are / (the console), /livez, /readyz, /metrics and /admin/v1\n";
const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
