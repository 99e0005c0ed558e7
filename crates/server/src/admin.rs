//! The admin address: `/livez`, `/readyz` and `/metrics`. It needs no key and is loopback by default.

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};

use crate::body::{Body, whole};
use crate::state::ServerState;

pub(crate) fn answer<B>(state: &ServerState, request: &Request<B>) -> Response<Body> {
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    let (status, content_type, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/livez") => (StatusCode::OK, text, "ok\n".to_owned()),
        (&Method::GET | &Method::HEAD, "/readyz") if state.lifecycle.is_stopping() => {
            (StatusCode::SERVICE_UNAVAILABLE, text, "stopping\n".to_owned())
        }
        (&Method::GET | &Method::HEAD, "/readyz") => (StatusCode::OK, text, "ok\n".to_owned()),
        (&Method::GET | &Method::HEAD, "/metrics") => {
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            (StatusCode::OK, HeaderValue::from_static(content_type), state.render_metrics())
        }
        (_, "/livez" | "/readyz" | "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, text, "use GET\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, text, "there are /livez, /readyz and /metrics\n".to_owned()),
    };
    let mut response = Response::new(whole(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
