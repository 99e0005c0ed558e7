//! Lets the web pages of the configured origins call the API
//! ([CORS](https://fetch.spec.whatwg.org/#http-cors-protocol)).
//!
//! Only the addresses of clients use this, and not the admin address.

use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use policy::clock;

use crate::connection::client_body::ClientBody;
use crate::connection::state::ConnectionState;
use crate::exchange::body::{Body, whole};
use crate::service;
use crate::state::GatewayState;

/// Answers one request received on `connection`, as [`service::answer`] does, with the headers that
/// let a page read the response. A preflight of a page needs no key: browsers send none with it.
pub async fn answer(
    state: &Arc<GatewayState>,
    request: Request<ClientBody>,
    connection: &Arc<ConnectionState>,
) -> Response<Body> {
    if state.cors_origins.is_empty() {
        return service::answer(state, request, connection).await;
    }
    let origin = known_origin(request.headers(), &state.cors_origins);
    let mut response = match origin.is_some() && is_preflight(&request) {
        true => preflight(request.headers(), state),
        false => service::answer(state, request, connection).await,
    };
    let headers = response.headers_mut();
    // The response differs for other origins, also if this request has none.
    headers.append(VARY, HeaderValue::from_name(ORIGIN));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        let exposed = HeaderValue::from_static(EXPOSED);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}

/// The origin of the page that sends a request, if it is a known one.
fn known_origin<'k>(headers: &HeaderMap, known: &'k [HeaderValue]) -> Option<&'k HeaderValue> {
    let mut sent = headers.get_all(ORIGIN).into_iter();
    let (Some(origin), None) = (sent.next(), sent.next()) else {
        return None;
    };
    known.iter().find(|known| *known == origin)
}

fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The response to the question of a browser if a page may send a request.
fn preflight(asked: &HeaderMap, state: &GatewayState) -> Response<Body> {
    let mut response = Response::new(whole(Vec::new().into()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
        (VARY, "Access-Control-Request-Headers"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(allowed) = allowed_headers(asked) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    let id = wire::id("req", clock::random_bits());
    service::add_common_headers(headers, &id, state.lifecycle.is_stopping());
    response
}

/// The requested headers that a page may send; `None` if it may send no requested header.
fn allowed_headers(asked: &HeaderMap) -> Option<HeaderValue> {
    let lines = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).into_iter();
    let names = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim);
    let allowed: Vec<_> = names
        .filter(|name| is_allowed(name))
        .take(MAX_NAMES)
        .collect();
    let line = HeaderValue::try_from(allowed.join(", ")).ok();
    line.filter(|line| !line.is_empty())
}

/// True for the headers that the gateway reads, and for those that the official clients send in
/// addition. Browsers write the names in lower case.
fn is_allowed(name: &str) -> bool {
    HEADERS.contains(&name)
        || name.strip_prefix("x-stainless-").is_some_and(|rest| {
            let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            rest.len() <= MAX_NAME && rest.bytes().all(is_of_name)
        })
}

/// The methods of all endpoints.
const METHODS: &str = "GET, POST, DELETE";
/// The time for which a browser may remember the answer to a preflight, in seconds. Browsers have
/// limits of their own, such as two hours.
const MAX_AGE: &str = "7200";
const HEADERS: &[&str] = &[
    "accept",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "authorization",
    "content-encoding",
    "content-type",
    "idempotency-key",
    "openai-beta",
    "openai-organization",
    "openai-project",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-api-key",
    "x-request-id",
];
/// The number of names in one response to a preflight.
const MAX_NAMES: usize = 64;
/// The length of such a name behind its prefix.
const MAX_NAME: usize = 64;
/// The headers that a page may read, besides those that every page may.
const EXPOSED: &str = "request-id, x-request-id, retry-after, retry-after-ms, x-should-retry, \
     x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, \
     x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, \
     anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, \
     anthropic-ratelimit-requests-reset, anthropic-ratelimit-tokens-limit, \
     anthropic-ratelimit-tokens-remaining, anthropic-ratelimit-tokens-reset, \
     x-sluicegate-dropped, x-sluicegate-estimated, x-sluicegate-limits";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_headers_of_clients_are_allowed() {
        let mut asked = HeaderMap::new();
        let lines = [
            "authorization,content-type,cookie,x-stainless-os",
            "x-stainless-\u{e9}, x-forwarded-for,x-api-key",
        ];
        for line in lines {
            asked.append(
                ACCESS_CONTROL_REQUEST_HEADERS,
                HeaderValue::from_bytes(line.as_bytes()).unwrap(),
            );
        }
        // A line that is not ASCII is not read.
        assert_eq!(
            allowed_headers(&asked).unwrap(),
            "authorization, content-type, x-stainless-os"
        );
        assert_eq!(allowed_headers(&HeaderMap::new()), None);
    }

    #[test]
    fn an_allowed_answer_is_short() {
        let mut asked = HeaderMap::new();
        let names = vec!["x-stainless-lang"; 4000].join(",");
        let names = HeaderValue::try_from(names).unwrap();
        asked.insert(ACCESS_CONTROL_REQUEST_HEADERS, names);
        assert!(allowed_headers(&asked).unwrap().len() < 64 * 20);
    }

    #[test]
    fn an_origin_is_one_that_is_configured() {
        let known = [HeaderValue::from_static("https://app.example")];
        let found = |origins: &[&'static str]| {
            let origins = origins.iter();
            let values = origins.map(|origin| (ORIGIN, HeaderValue::from_static(origin)));
            known_origin(&values.collect(), &known).is_some()
        };
        assert!(found(&["https://app.example"]));
        for other in [
            &["https://app.example.evil"][..],
            &["http://app.example"],
            &["https://app.example:8443"],
            &["null"],
            &[],
            &["https://app.example", "https://app.example"],
        ] {
            assert!(!found(other), "{other:?}");
        }
    }
}
