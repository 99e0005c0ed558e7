//! The path of one request from its head to its response. Read this first.
//!
//! The checks happen in the order of the functions below: the HTTP rules of a head, path, method,
//! key, scope, and then in the endpoint size, media type, JSON, fields, model, and last the permit.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use auth::{Credentials, Denied, Entry};
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONNECTION, HOST, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use policy::clock;
use policy::limit::quota_headers;
use policy::policy_keys::PolicyKeys;
use telemetry::outcome::Outcome;
use telemetry::requests::trace_queue::TraceQueue;
use telemetry::traces::context::TraceParent;
use telemetry::traces::request::RequestTrace;
use telemetry::traces::state::TraceState;
use wire::ErrorKind;

use crate::connection::client_body::ClientBody;
use crate::connection::state::ConnectionState;
use crate::endpoints::stored_response::Action::{Cancel, Delete, InputItems, Retrieve};
use crate::endpoints::stored_response::answer as stored_response;
use crate::endpoints::{count_tokens, images, models, text};
use crate::exchange::body::Body;
use crate::exchange::record::{Record, shortened};
use crate::exchange::refusal::{Refusal, Style};
use crate::request::head;
use crate::request::outgoing::{TRACEPARENT, TRACESTATE};
use crate::request::reply::{self, ReplyBody};
use crate::request::routing::{Endpoint, style};
use crate::state::{Caller, GatewayState};

/// Answers one request received on `connection`. A panic is answered with a 500: the process and
/// the connection survive it.
///
/// The future is boxed: its memory is freed with the response, while the connection goes on, and its
/// code is compiled in this crate. The code of an async function is otherwise compiled in each crate
/// that awaits it.
pub fn answer<'a>(
    state: &'a Arc<GatewayState>,
    request: Request<ClientBody>,
    connection: &'a Arc<ConnectionState>,
) -> BoxFuture<'a, Response<Body>> {
    boxed(|| answer_caught(state, request, connection))
}

/// Answers one request, also if the code that answers it panics.
async fn answer_caught(
    state: &Arc<GatewayState>,
    request: Request<ClientBody>,
    connection: &Arc<ConnectionState>,
) -> Response<Body> {
    let style = style_of(&request);
    let id = wire::id("req", clock::random_bits());
    let mut answer = pin!(respond(state, request, connection, style, &id));
    let guarded = poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        },
    );
    let mut response = guarded.await.unwrap_or_else(|| {
        state.metrics.panicked();
        Refusal::from(wire::ApiError::server_error()).into_response(style, &id)
    });
    add_common_headers(response.headers_mut(), &id, state.lifecycle.is_stopping());
    response
}

/// Answers one request, and records it. Every error is a response too. When the shutdown deadline
/// passes, or a lease is lost with which the request has to end, it is aborted.
async fn respond(
    state: &Arc<GatewayState>,
    request: Request<ClientBody>,
    connection: &Arc<ConnectionState>,
    style: Style,
    id: &str,
) -> Response<Body> {
    let mut record = Record::new(
        Arc::clone(&state.metrics),
        Arc::clone(&state.history),
        Arc::clone(connection),
        id.to_owned(),
    );
    record.client_id = client_id(request.headers());
    let traces = state.history.traces();
    record.trace = traces.map(|traces| Arc::new(trace(traces, request.uri(), request.headers())));
    let aborting = record.aborting(&state.lifecycle);
    let is_head = request.method() == Method::HEAD;
    let answered = tokio::select! {
        biased;
        answered = dispatch(state, request, &mut record) => answered,
        outcome = aborting => {
            record.end(outcome);
            Err(Refusal::aborted(outcome))
        }
    };
    match answered {
        Ok(mut response) => {
            record.status = response.status().as_u16();
            record.pass_headers(response.headers_mut());
            quota_headers::add(record.quotas(), response.headers_mut(), style);
            response.map(|reply| reply.into_body(record, state, is_head))
        }
        Err(mut refusal) => {
            note_refusal(&mut record, &refusal);
            let is_upgrade = refusal.error.kind == ErrorKind::UpgradeRequired;
            refusal.closes |= connection.has_unread_body() && !is_upgrade;
            let mut response = refusal.into_response(style, id);
            record.pass_headers(response.headers_mut());
            quota_headers::add(record.quotas(), response.headers_mut(), style);
            record.status = response.status().as_u16();
            response
        }
    }
}

/// The error format of a request's path and headers.
fn style_of<B>(request: &Request<B>) -> Style {
    style(request.uri().path(), request.headers())
}

/// Authenticates a request and passes it to its endpoint.
async fn dispatch(
    state: &Arc<GatewayState>,
    request: Request<ClientBody>,
    record: &mut Record,
) -> Result<Response<ReplyBody>, Refusal> {
    head::check(&request, state)?;
    let policy = state.policies.current();
    let has_responses = || {
        let mut models = policy.catalog.iter();
        state.kept.is_some() || models.any(catalog::Model::keeps_responses)
    };
    let endpoint = match head::wants_websocket(&request) {
        true => Endpoint::WebSocket,
        false => Endpoint::of(request.method(), request.uri().path(), has_responses)?,
    };
    record.route = endpoint.name();
    let key = admit(&policy.keys, &endpoint, request.headers())?;
    record.key = Some(Arc::clone(&key.name));
    record.revocation = policy.keys.revocation(&key.name);
    if let Some(scope) = endpoint
        .scope()
        .filter(|scope| !key.scopes.contains(*scope))
    {
        return Err(Refusal::capability(scope.as_str()));
    }
    let deadline = state.deadline(record);
    let caller = Caller {
        state,
        policy: &policy,
        key,
        record,
        deadline,
    };
    // Boxed, because these futures are large: otherwise they would be moved with each future around
    // them.
    match endpoint {
        Endpoint::Responses => {
            boxed(|| text::answer::<translate::inbound::Responses>(caller, request)).await
        }
        Endpoint::WebSocket => Ok(reply::switching_protocols(&caller.key.name)),
        Endpoint::Response(id) => {
            boxed(|| stored_response(caller, Retrieve, &id, query(&request))).await
        }
        Endpoint::DeleteResponse(id) => {
            boxed(|| stored_response(caller, Delete, &id, query(&request))).await
        }
        Endpoint::CancelResponse(id) => {
            boxed(|| stored_response(caller, Cancel, &id, query(&request))).await
        }
        Endpoint::InputItems(id) => {
            boxed(|| stored_response(caller, InputItems, &id, query(&request))).await
        }
        Endpoint::Chat => boxed(|| text::answer::<translate::inbound::Chat>(caller, request)).await,
        Endpoint::Messages => {
            boxed(|| text::answer::<translate::inbound::Messages>(caller, request)).await
        }
        Endpoint::CountTokens => {
            boxed(|| count_tokens::answer::<translate::inbound::Messages>(caller, request)).await
        }
        Endpoint::InputTokens => {
            boxed(|| count_tokens::answer::<translate::inbound::Responses>(caller, request)).await
        }
        Endpoint::ImageGenerations => boxed(|| images::generate(caller, request)).await,
        Endpoint::ImageEdits => boxed(|| images::edit(caller, request)).await,
        Endpoint::Models => models::list(&caller, query(&request), style_of(&request)),
        Endpoint::Model(id) => models::retrieve(&caller, &id, style_of(&request)),
    }
}

/// Creates a future within its box. `Box::pin` would create it elsewhere and copy all of its
/// memory, although a new future uses little of it.
#[inline(always)]
pub fn boxed<F: Future>(create: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), create()))
}

fn query<B>(request: &Request<B>) -> &str {
    request.uri().query().unwrap_or_default()
}

/// Adds the headers of every response.
pub(crate) fn add_common_headers(headers: &mut HeaderMap, id: &str, is_stopping: bool) {
    if let Ok(id) = HeaderValue::from_str(id) {
        // The operator may have chosen to pass on the ids of an upstream.
        headers.entry(X_REQUEST_ID).or_insert_with(|| id.clone());
        headers.entry(REQUEST_ID).or_insert(id);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    if is_stopping {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Returns the entry of the key that a request carries.
fn admit<'k>(
    keys: &'k PolicyKeys,
    endpoint: &Endpoint,
    headers: &HeaderMap,
) -> Result<&'k Entry, Refusal> {
    let all = |name: HeaderName| headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    let second = endpoint.takes_x_api_key().then(|| all(X_API_KEY));
    let second = second.into_iter().flatten();
    let credentials = Credentials::from_headers(all(AUTHORIZATION), second).map_err(refuse_key)?;
    keys.admit(&credentials, clock::unix_seconds())
        .map_err(refuse_key)
}

fn refuse_key(denied: Denied) -> Refusal {
    match denied {
        Denied::Missing => Refusal::missing_key(),
        _ => Refusal::invalid_key(),
    }
}

fn note_refusal(record: &mut Record, refusal: &Refusal) {
    if refusal.is_client_gone {
        return record.end(Outcome::ClientGone);
    }
    record.code = Some(refusal.error.code);
    record.cause = refusal.cause.as_deref().map(str::to_owned);
    record.end(Outcome::of_refusal(&refusal.error));
}

/// Begins the trace of a request, or continues the client's.
fn trace(traces: &TraceQueue, uri: &Uri, headers: &HeaderMap) -> RequestTrace {
    let parent = trace_parent(headers);
    let states = headers.get_all(TRACESTATE).into_iter();
    let host = match uri.host() {
        Some(host) => Some((host, uri.port_u16())),
        None => headers.get(HOST).and_then(host_and_port),
    };
    RequestTrace {
        context: traces.begin(parent, clock::random_bits),
        state: parent.and_then(|_| TraceState::parse(states.map(HeaderValue::as_bytes))),
        path: shortened(uri.path()),
        host: host.map(|(host, port)| (shortened(host), port)),
    }
}

/// Splits the value of a header `Host`. Over HTTP/2 the URL has both parts.
fn host_and_port(value: &HeaderValue) -> Option<(&str, Option<u16>)> {
    let value = value.to_str().ok()?;
    let split = value.rsplit_once(':').and_then(|(host, port)| {
        // The last part of an IPv6 address without a port ends with a bracket.
        Some((host, Some(port.parse().ok()?)))
    });
    Some(split.unwrap_or((value, None)))
}

/// The client's span, if the request is part of a trace: one valid header.
fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACEPARENT).into_iter();
    match (values.next(), values.next()) {
        (Some(value), None) => TraceParent::parse(value.as_bytes()),
        _ => None,
    }
}

/// The client's own request id, if it is safe to log.
fn client_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(X_REQUEST_ID)?.to_str().ok()?;
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    ((1..=64).contains(&id.len()) && id.chars().all(is_safe)).then(|| id.to_owned())
}

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::Context;

    use bytes::Bytes;
    use config::Config;
    use http_body::Frame;
    use http_body_util::BodyExt as _;
    use policy::Policy;
    use serde_json::{Value, json};

    use super::*;
    use crate::connection::client_body::client_body;
    use crate::state::Parts;

    const OPENAI: &str = include_str!("../../../tests/black_box/fixtures/errors-openai-style.json");
    const MESSAGES: &str =
        include_str!("../../../tests/black_box/fixtures/errors-messages-style.json");

    #[test]
    fn the_host_of_a_request_is_read_with_its_port() {
        for (value, host, port) in [
            ("gate.example", "gate.example", None),
            ("gate.example:8080", "gate.example", Some(8080)),
            ("127.0.0.1:65535", "127.0.0.1", Some(65535)),
            ("[::1]", "[::1]", None),
            ("[::1]:443", "[::1]", Some(443)),
            ("gate.example:70000", "gate.example:70000", None),
        ] {
            let value = HeaderValue::from_static(value);
            assert_eq!(host_and_port(&value), Some((host, port)));
        }
        let invalid = HeaderValue::from_bytes(b"gate\xff").unwrap();
        assert_eq!(host_and_port(&invalid), None);
    }

    /// A body that panics when it is polled.
    struct Injected;

    impl http_body::Body for Injected {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            panic!("injected");
        }
    }

    /// Returns the row of an error table, with the id of the request filled in.
    fn row(table: &str, when: &str, id: &str) -> Value {
        let rows: Vec<Value> = serde_json::from_str(&table.replace("req_<id>", id)).unwrap();
        rows.into_iter().find(|row| row["when"] == when).unwrap()
    }

    /// A panic before the answer has started is a 500 in the protocol's shape, without its cause.
    /// It is counted once, and the next request is answered. These are the rows of the error tables
    /// that only a panic can provoke.
    #[tokio::test]
    async fn c07_a_panic_before_the_answer_is_a_500() {
        let config = Config::default();
        let (policy, generated) =
            Policy::read(&config, false, upstream::Network::default()).unwrap();
        let state = Arc::new(GatewayState::new(Parts::new(&config, policy)));
        let bearer = |index: usize| format!("Bearer {}", generated[index].key.expose());
        for (path, key, table, when) in [
            (
                "/v1/responses",
                bearer(0),
                OPENAI,
                "internal error before the first byte",
            ),
            ("/v1/messages", bearer(1), MESSAGES, "internal error"),
        ] {
            let request = Request::post(path)
                .header("host", "gateway")
                .header(AUTHORIZATION, key);
            let request = request
                .header("content-type", "application/json")
                .body(client_body(Injected))
                .unwrap();
            let (head, body) = answer(&state, request, &Arc::default()).await.into_parts();
            let body: Value =
                serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
            let expected = row(table, when, head.headers["x-request-id"].to_str().unwrap());
            assert_eq!(
                (json!(head.status.as_u16()), &body),
                (expected["status"].clone(), &expected["body"])
            );
            for (name, value) in expected["headers"].as_object().unwrap() {
                assert_eq!(head.headers[name], value.as_str().unwrap(), "{name}");
            }
        }

        let models = Request::get("/v1/models")
            .header("host", "gateway")
            .header(AUTHORIZATION, bearer(0));
        let models = answer(
            &state,
            models.body(client_body(Injected)).unwrap(),
            &Arc::default(),
        )
        .await;
        assert_eq!(models.status(), 200);
        let metrics = state.render_metrics();
        for line in [
            "sluicegate_panics_total 2",
            "sluicegate_in_flight 0",
            "sluicegate_requests_total{route=\"responses\",status=\"500\",code=\"server_error\"} 1",
            "sluicegate_requests_total{route=\"messages\",status=\"500\",code=\"server_error\"} 1",
        ] {
            assert!(
                metrics.lines().any(|found| found == line),
                "{line}: {metrics}"
            );
        }
    }
}
