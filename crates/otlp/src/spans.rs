//! The spans of a finished request: one of kind `SERVER` for the request, and one of kind `CLIENT` for
//! each attempt.

use bytes::Bytes;
use config::traces::Semconv;
use telemetry::metrics::gen_ai::operation;
use telemetry::requests::report::{AttemptReport, AttemptResult, RequestReport, Road};
use telemetry::requests::routes::method_and_path;
use telemetry::traces::context::{SpanId, TraceContext};
use telemetry::traces::request::RequestTrace;

use crate::messages::{
    Copied, HAS_IS_REMOTE, IS_REMOTE, KeyValue, Span, SpanKind, Status, StatusCode, Value,
};
use crate::names::{self, Name};
use crate::servers::{Server, Servers};

/// The attributes of a span, with the names of a version of the conventions.
struct Attributes {
    semconv: Semconv,
    list: Vec<KeyValue>,
}

/// Makes the spans of requests.
pub(crate) struct SpanMaker {
    pub(crate) semconv: Semconv,
    /// The scheme of the URLs of clients.
    pub(crate) scheme: &'static str,
    pub(crate) servers: Servers,
}

impl Attributes {
    fn new(semconv: Semconv) -> Self {
        let list = Vec::with_capacity(MOST_ATTRIBUTES);
        Self { semconv, list }
    }

    /// Adds an attribute, if this version of the conventions has it.
    fn set(&mut self, name: Name, value: impl Into<Value>) {
        if let Some(name) = name.of(self.semconv) {
            self.list.push(KeyValue::new(name, value));
        }
    }

    /// Adds an attribute, if its value is known.
    fn set_known(&mut self, name: Name, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Adds a list, unless it is empty.
    fn set_list<'a>(&mut self, name: Name, texts: impl IntoIterator<Item = &'a String>) {
        let mut texts = texts.into_iter().peekable();
        if texts.peek().is_some() {
            self.set(name, texts.collect::<Value>());
        }
    }
}

impl SpanMaker {
    /// Adds the spans of a request. One without a trace has none.
    pub(crate) fn add(&self, report: &RequestReport, spans: &mut Vec<Span>) {
        let Some(trace) = report.trace.as_deref() else {
            return;
        };
        let ids = &trace.context;
        let trace_id = Bytes::copy_from_slice(&ids.trace.to_bytes());
        let state = trace.state.as_ref().map(|state| state.as_str().as_bytes());
        let trace_state = state.map(Bytes::copy_from_slice).unwrap_or_default();
        let server = Span {
            trace_id: trace_id.clone(),
            span_id: bytes(ids.span),
            trace_state: trace_state.clone(),
            parent_span_id: ids.parent.map(bytes).unwrap_or_default(),
            flags: flags(ids, ids.parent.is_some()),
            ..self.server_span(report, trace)
        };
        debug_assert!(server.attributes.len() <= MOST_ATTRIBUTES);
        spans.push(server);
        let attempts = report.attempts.iter().enumerate();
        spans.extend(attempts.map(|(number, attempt)| {
            let span = Span {
                trace_id: trace_id.clone(),
                span_id: bytes(ids.attempt_span(number)),
                trace_state: trace_state.clone(),
                parent_span_id: bytes(ids.span),
                flags: flags(ids, false),
                ..self.client_span(report, attempt)
            };
            debug_assert!(span.attributes.len() <= MOST_ATTRIBUTES);
            span
        }));
    }

    /// The span of the request, without its ids.
    fn server_span(&self, report: &RequestReport, trace: &RequestTrace) -> Span {
        let (method, route) = method_and_path(report.route).unzip();
        let is_failed = report.status >= 500 || report.outcome.is_failure();
        let mut attributes = Attributes::new(self.semconv);
        attributes.set_known(names::HTTP_METHOD, method);
        attributes.set_known(names::HTTP_ROUTE, route);
        attributes.set(names::URL_SCHEME, self.scheme);
        attributes.set(names::URL_PATH, Copied(&trace.path));
        if let Some((host, port)) = &trace.host {
            attributes.set(names::SERVER_ADDRESS, Copied(host));
            attributes.set_known(names::SERVER_PORT, port.map(u64::from));
        }
        attributes.set(names::HTTP_STATUS, u64::from(report.status));
        if is_failed {
            let code = report.code.unwrap_or(report.outcome.as_str());
            attributes.set(names::ERROR_TYPE, code);
        }
        attributes.set(names::REQUEST_ID, Copied(&report.request_id));
        attributes.set(names::KEY, Copied(&report.key));
        attributes.set_known(names::MODEL, report.model.as_deref().map(Copied));
        attributes.set(names::OUTCOME, report.outcome.as_str());
        let answered = report.answered();
        attributes.set_known(
            names::TARGET,
            answered.map(|attempt| Copied(&attempt.target)),
        );
        if let Some(admission) = &report.admission {
            let refused_by = admission.refused_by.as_ref();
            attributes.set_known(names::REFUSED_BY, refused_by.map(|it| Copied(&it.limit)));
            let admitted = admission.limits.iter().filter(|_| refused_by.is_none());
            attributes.set_list(names::ADMITTED_BY, admitted.map(|it| &it.limit));
            attributes.set_known(names::QUEUE_MS, admission.queued_ms);
        }
        let dropped = answered.map(|attempt| &attempt.dropped);
        attributes.set_list(names::DROPPED, dropped.into_iter().flatten());
        attributes.set_known(names::FIRST_EVENT_MS, report.first_event_ms);
        Span {
            name: name(method.unwrap_or("HTTP"), route),
            kind: SpanKind::Server.into(),
            start_time_unix_nano: at(report, 0.0),
            end_time_unix_nano: at(report, report.took_ms),
            attributes: attributes.list,
            status: is_failed.then(|| error(report.cause.as_deref())),
            ..Span::default()
        }
    }

    /// The span of an attempt, without its ids.
    fn client_span(&self, report: &RequestReport, attempt: &AttemptReport) -> Span {
        let is_answer = attempt.result == AttemptResult::Answered;
        let model = attempt.model.as_deref().or(report.model.as_deref());
        let operation = operation(report.route);
        let output = (operation == "generate_content").then_some("image");
        let server = self.servers.get(&attempt.target);
        // The target that has answered also brought the answer to its end.
        let failure = match attempt.result {
            AttemptResult::Answered => {
                let outcome = report.outcome;
                outcome.is_failure().then_some(outcome.as_str())
            }
            AttemptResult::Failed => Some(attempt.code.unwrap_or("_OTHER")),
            AttemptResult::CircuitOpen => Some("circuit_open"),
        };
        let mut attributes = Attributes::new(self.semconv);
        attributes.set(names::OPERATION, operation);
        attributes.set(
            names::PROVIDER,
            server.map_or("sluicegate", |it| it.provider),
        );
        attributes.set_known(names::REQUEST_MODEL, model.map(Copied));
        attributes.set_known(names::REQUEST_STREAM, report.stream.then_some(true));
        attributes.set_known(names::OUTPUT_TYPE, output);
        attributes.set_server(server);
        attributes.set(names::TARGET, Copied(&attempt.target));
        let upstream_request_id = attempt.upstream_request_id.as_deref();
        attributes.set_known(names::UPSTREAM_REQUEST_ID, upstream_request_id.map(Copied));
        attributes.set_list(names::DROPPED, &attempt.dropped);
        attributes.set_known(names::ERROR_TYPE, failure);
        if is_answer {
            attributes.set_usage(report);
            let to_first = (attempt.answered_ms - attempt.started_ms) / 1e3;
            let to_first = report.stream.then_some(to_first);
            attributes.set_known(names::TIME_TO_FIRST_CHUNK, to_first);
        }
        let (end, cause) = match is_answer {
            true => (report.took_ms, &report.cause),
            false => (attempt.answered_ms, &attempt.cause),
        };
        let kind = match attempt.road {
            Road::Embedded => SpanKind::Internal,
            Road::Relayed | Road::Translated => SpanKind::Client,
        };
        Span {
            name: name(operation, model),
            kind: kind.into(),
            start_time_unix_nano: at(report, attempt.started_ms),
            end_time_unix_nano: at(report, end),
            attributes: attributes.list,
            status: failure.map(|_| error(cause.as_deref())),
            ..Span::default()
        }
    }
}

impl Attributes {
    fn set_server(&mut self, server: Option<&Server>) {
        let address = server.and_then(|server| server.address.as_ref());
        if let Some((host, port)) = address {
            self.set(names::SERVER_ADDRESS, Copied(host));
            self.set(names::SERVER_PORT, u64::from(*port));
        }
    }

    /// Adds the tokens that were reported, also by failed attempts: they were used too, and sums over a
    /// trace are right only if each token is in one span.
    fn set_usage(&mut self, report: &RequestReport) {
        for (name, tokens) in [
            (names::INPUT_TOKENS, report.input_tokens),
            (names::CACHE_READ_TOKENS, report.cache_read_tokens),
            (names::CACHE_WRITE_TOKENS, report.cache_write_tokens),
            (names::OUTPUT_TOKENS, report.output_tokens),
            (names::REASONING_TOKENS, report.reasoning_tokens),
        ] {
            self.set_known(name, tokens);
        }
    }
}

/// The name of a span: what is done, and with what.
fn name(verb: &str, object: Option<&str>) -> Bytes {
    match object {
        Some(object) => [verb, " ", object].concat().into(),
        None => Bytes::copy_from_slice(verb.as_bytes()),
    }
}

fn bytes(id: SpanId) -> Bytes {
    Bytes::copy_from_slice(&id.to_bytes())
}

fn flags(trace: &TraceContext, is_parent_remote: bool) -> u32 {
    let remote = if is_parent_remote { IS_REMOTE } else { 0 };
    HAS_IS_REMOTE | remote | u32::from(trace.is_sampled)
}

/// The time after so many milliseconds of a request, in nanoseconds since the Unix epoch.
fn at(report: &RequestReport, after_ms: f64) -> u64 {
    let received = u64::try_from(report.at.0).unwrap_or_default();
    let nanoseconds = (after_ms.max(0.0) * 1e6) as u64;
    received
        .saturating_mul(1_000_000)
        .saturating_add(nanoseconds)
}

fn error(cause: Option<&str>) -> Status {
    Status {
        message: cause
            .map(|cause| Bytes::copy_from_slice(cause.as_bytes()))
            .unwrap_or_default(),
        code: StatusCode::Error.into(),
    }
}

/// The room for the attributes of a span, so that they are allocated once.
const MOST_ATTRIBUTES: usize = 20;

#[cfg(test)]
mod tests;
