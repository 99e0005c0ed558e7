//! The spans of a finished request: one of kind `SERVER` for the request, and one of kind `CLIENT` for
//! each attempt. They are written as `ScopeSpans` has them, with the tags of [`Span`](crate::messages::Span).

use config::traces::Semconv;
use telemetry::metrics::gen_ai::operation;
use telemetry::requests::report::{AttemptReport, AttemptResult, RequestReport, Road};
use telemetry::requests::routes::method_and_path;
use telemetry::traces::context::SpanId;
use telemetry::traces::request::RequestTrace;

use crate::attributes::Attributes;
use crate::fields::Fields;
use crate::messages::{HAS_IS_REMOTE, IS_REMOTE, SpanKind, StatusCode};
use crate::names;
use crate::servers::{Server, Servers};

/// Makes the spans of requests.
pub(crate) struct SpanMaker {
    pub(crate) semconv: Semconv,
    /// The scheme of the URLs of clients.
    pub(crate) scheme: &'static str,
    pub(crate) servers: Servers,
}

/// The ids of a span.
struct Ids<'a> {
    trace: &'a RequestTrace,
    span: SpanId,
    parent: Option<SpanId>,
    is_parent_remote: bool,
}

impl Ids<'_> {
    /// Adds the span to a message `ScopeSpans`, with the fields that `write` adds to its ids. All fields are in the
    /// order of their tags.
    fn add_span(&self, spans: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        spans.message(SPANS, |span| {
            self.write(span);
            write(span);
            span.fixed32(16, self.flags());
        });
    }

    fn write(&self, span: &mut Vec<u8>) {
        let context = &self.trace.context;
        span.bytes(1, &context.trace.to_bytes());
        span.bytes(2, &self.span.to_bytes());
        if let Some(state) = &self.trace.state {
            span.bytes(3, state.as_str().as_bytes());
        }
        if let Some(parent) = self.parent {
            span.bytes(4, &parent.to_bytes());
        }
    }

    fn flags(&self) -> u32 {
        let remote = if self.is_parent_remote { IS_REMOTE } else { 0 };
        HAS_IS_REMOTE | remote | u32::from(self.trace.context.is_sampled)
    }
}

impl SpanMaker {
    /// Adds the spans of a request to a message `ScopeSpans`, and returns their number. A request without a trace
    /// has none.
    pub(crate) fn add(&self, report: &RequestReport, spans: &mut Vec<u8>) -> u64 {
        let Some(trace) = report.trace.as_deref() else {
            return 0;
        };
        let context = &trace.context;
        let ids = Ids {
            trace,
            span: context.span,
            parent: context.parent,
            is_parent_remote: context.parent.is_some(),
        };
        ids.add_span(spans, |span| self.write_server_span(report, trace, span));
        for (number, attempt) in report.attempts.iter().enumerate() {
            let ids = Ids {
                trace,
                span: context.attempt_span(number),
                parent: Some(context.span),
                is_parent_remote: false,
            };
            ids.add_span(spans, |span| self.write_client_span(report, attempt, span));
        }
        report.spans()
    }

    /// Writes the span of the request, without its ids.
    fn write_server_span(&self, report: &RequestReport, trace: &RequestTrace, span: &mut Vec<u8>) {
        let (method, route) = method_and_path(report.route).unzip();
        let is_failed = report.status >= 500 || report.outcome.is_failure();
        write_name(span, method.unwrap_or("HTTP"), route);
        span.varint(KIND, SpanKind::Server as u64);
        write_times(span, report, 0.0, report.took_ms);
        let mut attributes = Attributes::new(self.semconv, span);
        attributes.set_known(names::HTTP_METHOD, method);
        attributes.set_known(names::HTTP_ROUTE, route);
        attributes.set(names::URL_SCHEME, self.scheme);
        attributes.set(names::URL_PATH, trace.path.as_str());
        if let Some((host, port)) = &trace.host {
            attributes.set(names::SERVER_ADDRESS, host.as_str());
            attributes.set_known(names::SERVER_PORT, port.map(u64::from));
        }
        attributes.set(names::HTTP_STATUS, u64::from(report.status));
        if is_failed {
            let code = report.code.unwrap_or(report.outcome.as_str());
            attributes.set(names::ERROR_TYPE, code);
        }
        attributes.set(names::REQUEST_ID, report.request_id.as_str());
        attributes.set(names::KEY, &*report.key);
        attributes.set_known(names::MODEL, report.model.as_deref());
        attributes.set(names::OUTCOME, report.outcome.as_str());
        let answered = report.answered();
        attributes.set_known(
            names::TARGET,
            answered.map(|attempt| attempt.target.as_str()),
        );
        if let Some(admission) = &report.admission {
            let refused_by = admission.refused_by.as_ref();
            attributes.set_known(names::REFUSED_BY, refused_by.map(|it| &*it.limit));
            let admitted = admission.limits.iter().filter(|_| refused_by.is_none());
            attributes.set_list(names::ADMITTED_BY, admitted.map(|it| &it.limit));
            attributes.set_known(names::QUEUE_MS, admission.queued_ms);
        }
        let dropped = answered.map(|attempt| &attempt.dropped);
        attributes.set_list(names::DROPPED, dropped.into_iter().flatten());
        attributes.set_known(names::FIRST_EVENT_MS, report.first_event_ms);
        if is_failed {
            write_error(span, report.cause.as_deref());
        }
    }

    /// Writes the span of an attempt, without its ids.
    fn write_client_span(
        &self,
        report: &RequestReport,
        attempt: &AttemptReport,
        span: &mut Vec<u8>,
    ) {
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
            AttemptResult::Cancelled => None,
        };
        let (end, cause) = match is_answer {
            true => (report.took_ms, &report.cause),
            false => (attempt.answered_ms, &attempt.cause),
        };
        let kind = match attempt.road {
            Road::Embedded => SpanKind::Internal,
            Road::Relayed | Road::Translated => SpanKind::Client,
        };
        write_name(span, operation, model);
        span.varint(KIND, kind as u64);
        write_times(span, report, attempt.started_ms, end);
        let mut attributes = Attributes::new(self.semconv, span);
        attributes.set(names::OPERATION, operation);
        attributes.set(
            names::PROVIDER,
            server.map_or("sluicegate", |it| it.provider),
        );
        attributes.set_known(names::REQUEST_MODEL, model);
        attributes.set_known(names::REQUEST_STREAM, report.stream.then_some(true));
        attributes.set_known(names::OUTPUT_TYPE, output);
        attributes.set_server(server);
        attributes.set(names::TARGET, attempt.target.as_str());
        let upstream_request_id = attempt.upstream_request_id.as_deref();
        attributes.set_known(names::UPSTREAM_REQUEST_ID, upstream_request_id);
        attributes.set_list(names::DROPPED, &attempt.dropped);
        attributes.set_known(names::ERROR_TYPE, failure);
        if is_answer {
            attributes.set_usage(report);
            let to_first = (attempt.answered_ms - attempt.started_ms) / 1e3;
            let to_first = report.stream.then_some(to_first);
            attributes.set_known(names::TIME_TO_FIRST_CHUNK, to_first);
        }
        if failure.is_some() {
            write_error(span, cause.as_deref());
        }
    }
}

impl Attributes<'_> {
    fn set_server(&mut self, server: Option<&Server>) {
        let address = server.and_then(|server| server.address.as_ref());
        if let Some((host, port)) = address {
            self.set(names::SERVER_ADDRESS, host.as_str());
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

/// Writes the name of a span: what is done, and with what.
fn write_name(span: &mut Vec<u8>, verb: &str, object: Option<&str>) {
    span.message(5, |name| {
        name.extend_from_slice(verb.as_bytes());
        if let Some(object) = object {
            name.push(b' ');
            name.extend_from_slice(object.as_bytes());
        }
    });
}

/// Writes the start and the end of a span, in milliseconds of its request.
fn write_times(span: &mut Vec<u8>, report: &RequestReport, start_ms: f64, end_ms: f64) {
    span.fixed64(7, at(report, start_ms));
    span.fixed64(8, at(report, end_ms));
}

/// The time after so many milliseconds of a request, in nanoseconds since the Unix epoch.
fn at(report: &RequestReport, after_ms: f64) -> u64 {
    let received = u64::try_from(report.at.0).unwrap_or_default();
    let nanoseconds = (after_ms.max(0.0) * 1e6) as u64;
    received
        .saturating_mul(1_000_000)
        .saturating_add(nanoseconds)
}

/// Writes the status of a span that is an error.
fn write_error(span: &mut Vec<u8>, cause: Option<&str>) {
    span.message(15, |status| {
        if let Some(cause) = cause {
            status.bytes(2, cause.as_bytes());
        }
        status.varint(3, StatusCode::Error as u64);
    });
}

/// The tag of the spans in `ScopeSpans`.
const SPANS: u32 = 2;
/// The tag of the kind of a span.
const KIND: u32 = 6;

#[cfg(test)]
mod tests;
