//! The path of one request from its head to its response. Read this first.
//!
//! The checks happen in the order of the functions below: the HTTP rules of a head, path, method, key, scope, and then
//! in the endpoint size, media type, JSON, fields, model, and last the permit.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use auth::{Credentials, Denied, Entry, KeyRing};
use bytes::Bytes;
use engine::{ImageEngine, TextEngine};
use fetch::Fetcher;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONNECTION};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::body::buffered::is_short;
use crate::body::delivered::delivered;
use crate::body::upload::Budget;
use crate::body::{Body, whole};
use crate::clock;
use crate::config::Limits;
use crate::connection_state::ConnectionState;
use crate::endpoints::{count_tokens, images, models, text};
use crate::head;
use crate::lifecycle::Lifecycle;
use crate::limit::Limiter;
use crate::metrics::Metrics;
use crate::outcome::Outcome;
use crate::policy::{Policies, Policy};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::routing::{Endpoint, style};

/// The shared state of all requests.
pub(crate) struct Gateway {
    pub(crate) policies: Arc<Policies>,
    pub(crate) limits: Limits,
    pub(crate) limiter: Limiter,
    pub(crate) budget: Budget,
    pub(crate) text_engine: Option<Arc<dyn TextEngine>>,
    pub(crate) image_engine: Option<Arc<dyn ImageEngine>>,
    pub(crate) fetcher: Fetcher,
    /// Permits for fetching images, in total and per key.
    pub(crate) fetches: Limiter,
    /// Permits for parsing large bodies, which takes many times their size in memory.
    pub(crate) reading: Arc<Semaphore>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) started: Instant,
}

/// An authenticated caller, and the state for serving it.
pub(crate) struct Caller<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    pub(crate) policy: &'a Arc<Policy>,
    pub(crate) key: &'a Entry,
    pub(crate) record: &'a mut Option<Record>,
}

impl Gateway {
    /// Answers one request received on `connection`. Every error is a response too.
    async fn answer<B>(
        self: &Arc<Self>,
        request: Request<B>,
        connection: &Arc<ConnectionState>,
        id: &str,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes, Error: Error> + Send,
    {
        let style = style(request.uri().path(), request.headers());
        let mut record = Record::new(Arc::clone(&self.metrics), Arc::clone(connection), id.to_owned());
        record.client_id = client_id(request.headers());
        // A streaming endpoint moves the record into its body.
        let mut record = Some(record);
        let mut response = match self.or_abort(request, &mut record).await {
            Ok(response) => self.with_record(response, &mut record),
            Err(refusal) => {
                let (status, headers, body) = refusal.render(style, id);
                note_refusal(record.as_mut(), &refusal);
                let mut response = Response::new(whole(body));
                *response.status_mut() = status;
                *response.headers_mut() = headers;
                response
            }
        };
        if let Some(record) = &mut record {
            record.status = response.status().as_u16();
            record.end(Outcome::Completed);
        }
        self.add_common_headers(response.headers_mut(), id);
        response
    }

    /// Moves the record into the body of a long reply, so that it ends with the last byte. A short reply is written at
    /// once.
    fn with_record(&self, response: Response<Body>, record: &mut Option<Record>) -> Response<Body> {
        if is_short(response.body()) {
            return response;
        }
        let Some(mut record) = record.take() else { return response };
        record.status = response.status().as_u16();
        let deadline = record.started() + self.limits.request_timeout;
        response.map(|body| delivered(body, record, deadline, self.lifecycle.abort_signal()))
    }

    /// Like [`Gateway::answer`], but turns a panic into a 500: the process and the connection survive it.
    pub(crate) async fn answer_guarded<B>(
        self: &Arc<Self>,
        request: Request<B>,
        connection: &Arc<ConnectionState>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes, Error: Error> + Send,
    {
        let style = style(request.uri().path(), request.headers());
        let id = wire::id("req", clock::random_bits());
        let mut answer = pin!(self.answer(request, connection, &id));
        let guarded = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        });
        if let Some(response) = guarded.await {
            return response;
        }
        self.metrics.panicked();
        let (status, headers, body) = Refusal::from(wire::ApiError::server_error()).render(style, &id);
        let mut response = Response::new(whole(body));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        self.add_common_headers(response.headers_mut(), &id);
        response
    }

    /// Renders every metric in the Prometheus text format.
    pub(crate) fn render_metrics(&self) -> String {
        self.metrics.render(self.limiter.taken(), self.started.elapsed())
    }

    /// Like [`Gateway::route`], but aborts the request when the shutdown deadline passes.
    async fn or_abort<B>(
        self: &Arc<Self>,
        request: Request<B>,
        record: &mut Option<Record>,
    ) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body<Data = Bytes, Error: Error> + Send,
    {
        tokio::select! {
            biased;
            answer = self.route(request, record) => answer,
            () = self.lifecycle.abort_signal().wait() => {
                if let Some(record) = record {
                    record.end(Outcome::Shutdown);
                }
                Err(Refusal::shutting_down())
            }
        }
    }

    async fn route<B>(
        self: &Arc<Self>,
        request: Request<B>,
        record: &mut Option<Record>,
    ) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body<Data = Bytes, Error: Error> + Send,
    {
        head::check(&request, &self.limits)?;
        let endpoint = Endpoint::of(request.method(), request.uri().path())?;
        if let Some(record) = record {
            record.route = endpoint.name();
        }
        let policy = self.policies.current();
        let key = admit(&policy.keys, &endpoint, request.headers())?;
        if let Some(record) = record {
            record.key = Some(key.name.clone());
        }
        if let Some(scope) = endpoint.scope().filter(|scope| !key.scopes.contains(*scope)) {
            return Err(Refusal::capability(scope.as_str()));
        }
        let caller = Caller { gateway: self, policy: &policy, key, record };
        match endpoint {
            Endpoint::Responses => text::answer::<translate::inbound::Responses, B>(caller, request).await,
            Endpoint::Chat => text::answer::<translate::inbound::Chat, B>(caller, request).await,
            Endpoint::Messages => text::answer::<translate::inbound::Messages, B>(caller, request).await,
            Endpoint::CountTokens => Box::pin(count_tokens::answer(caller, request)).await,
            // Boxed because their futures are large and would enlarge every request.
            Endpoint::ImageGenerations => Box::pin(images::generate(caller, request)).await,
            Endpoint::ImageEdits => Box::pin(images::edit(caller, request)).await,
            Endpoint::Models => models::list(&caller, request.uri().query().unwrap_or_default()),
            Endpoint::Model(id) => models::retrieve(&caller, &id),
        }
    }

    fn add_common_headers(&self, headers: &mut HeaderMap, id: &str) {
        if let Ok(id) = HeaderValue::from_str(id) {
            headers.insert(HeaderName::from_static("x-request-id"), id.clone());
            headers.insert(HeaderName::from_static("request-id"), id);
        }
        headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        if self.lifecycle.is_stopping() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Returns the entry of the key that a request carries.
fn admit<'k>(keys: &'k KeyRing, endpoint: &Endpoint, headers: &HeaderMap) -> Result<&'k Entry, Refusal> {
    let all = |name: &HeaderName| headers.get_all(name).into_iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
    let second = if endpoint.takes_x_api_key() { all(&X_API_KEY) } else { Vec::new() };
    let credentials = Credentials::from_headers(all(&AUTHORIZATION), second).map_err(refuse_key)?;
    keys.admit(&credentials, clock::unix_seconds()).map_err(refuse_key)
}

fn refuse_key(denied: Denied) -> Refusal {
    match denied {
        Denied::Missing => Refusal::missing_key(),
        _ => Refusal::invalid_key(),
    }
}

fn note_refusal(record: Option<&mut Record>, refusal: &Refusal) {
    let Some(record) = record else { return };
    if refusal.is_client_gone {
        return record.end(Outcome::ClientGone);
    }
    record.code = Some(refusal.error.code);
    record.cause = refusal.cause.clone();
    record.end(Outcome::of_refusal(&refusal.error));
}

/// The client's own request id, if it is safe to log.
fn client_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id")?.to_str().ok()?;
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    ((1..=64).contains(&id.len()) && id.chars().all(is_safe)).then(|| id.to_owned())
}

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::Context;

    use http_body::Frame;
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::config::Config;
    use crate::start::{Engines, assemble};

    const OPENAI: &str = include_str!("../../../tests/black_box/fixtures/errors-openai-style.json");
    const MESSAGES: &str = include_str!("../../../tests/black_box/fixtures/errors-messages-style.json");

    /// A body that panics when it is polled.
    struct Injected;

    impl http_body::Body for Injected {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            panic!("injected");
        }
    }

    /// Returns the row of an error table, with the id of the request filled in.
    fn row(table: &str, when: &str, id: &str) -> Value {
        let rows: Vec<Value> = serde_json::from_str(&table.replace("req_<id>", id)).unwrap();
        rows.into_iter().find(|row| row["when"] == when).unwrap()
    }

    /// A panic before the answer has started is a 500 in the protocol's shape, without its cause. It is counted once,
    /// and the next request is answered. These are the rows of the error tables that only a panic can provoke.
    #[tokio::test]
    async fn c07_a_panic_before_the_answer_is_a_500() {
        let config = Config::default();
        let (policy, generated) = Policy::read(&config, false, upstream::Network::default()).unwrap();
        let gateway = Arc::new(assemble(config, policy, Engines::default(), &[]));
        let bearer = |index: usize| format!("Bearer {}", generated[index].key.expose());
        for (path, key, table, when) in [
            ("/v1/responses", bearer(0), OPENAI, "internal error before the first byte"),
            ("/v1/messages", bearer(1), MESSAGES, "internal error"),
        ] {
            let request = Request::post(path).header("host", "gateway").header(AUTHORIZATION, key);
            let request = request.header("content-type", "application/json").body(Injected).unwrap();
            let (head, body) = gateway.answer_guarded(request, &Arc::default()).await.into_parts();
            let body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
            let expected = row(table, when, head.headers["x-request-id"].to_str().unwrap());
            assert_eq!((json!(head.status.as_u16()), &body), (expected["status"].clone(), &expected["body"]));
            for (name, value) in expected["headers"].as_object().unwrap() {
                assert_eq!(head.headers[name], value.as_str().unwrap(), "{name}");
            }
        }

        let models = Request::get("/v1/models").header("host", "gateway").header(AUTHORIZATION, bearer(0));
        let models = gateway.answer_guarded(models.body(Injected).unwrap(), &Arc::default()).await;
        assert_eq!(models.status(), 200);
        let metrics = gateway.render_metrics();
        for line in [
            "sluicegate_panics_total 2",
            "sluicegate_in_flight 0",
            "sluicegate_requests_total{route=\"responses\",status=\"500\",code=\"server_error\"} 1",
            "sluicegate_requests_total{route=\"messages\",status=\"500\",code=\"server_error\"} 1",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
        }
    }
}
