//! Tests of the spans of requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use config::Config;
use policy::Policy;
use prost::Message as _;
use telemetry::outcome::Outcome;
use telemetry::requests::report::{Admission, AppliedLimit, ReceivedAt, RefusingLimit};
use telemetry::traces::context::{TraceContext, TraceId, TraceParent};
use telemetry::traces::state::TraceState;
use upstream::Network;

use super::*;
use crate::messages::{
    AnyValue, ArrayValue, ExportTraceServiceRequest, InstrumentationScope, KeyValue, Resource,
    ResourceSpans, ScopeSpans, Span, Status, Value,
};

fn maker(semconv: Semconv) -> SpanMaker {
    let upstreams = "[[upstreams]]\nname = \"house\"\nprotocol = \"chat\"\n\
                     base_url = \"http://house.example:8000/v1\"\n\
                     [[upstreams]]\nname = \"vendor\"\npreset = \"anthropic\"\n";
    let config = Config::parse(upstreams).unwrap();
    let (policy, _) = Policy::read(&config, false, Network::default()).unwrap();
    SpanMaker {
        semconv,
        scheme: "http",
        servers: Servers::of(&policy),
    }
}

fn attempt(target: &str, result: AttemptResult) -> AttemptReport {
    AttemptReport {
        target: target.to_owned(),
        model: Some("large".to_owned()),
        road: Road::Translated,
        result,
        code: None,
        cause: None,
        upstream_request_id: None,
        dropped: Vec::new(),
        started_ms: 1.5,
        answered_ms: 251.5,
    }
}

fn report() -> RequestReport {
    let parent = TraceParent::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let parent = parent.unwrap();
    RequestReport {
        trace: Some(Arc::new(RequestTrace {
            context: TraceContext {
                trace: parent.trace,
                parent: Some(parent.span),
                span: SpanId::new(0x0102_0304_0506_0708),
                is_sampled: true,
            },
            state: TraceState::parse([&b"congo=t61rcWkgMzE"[..]]),
            path: "/v1/messages".to_owned(),
            host: Some(("gate.example".to_owned(), Some(8080))),
        })),
        at: ReceivedAt(1_801_469_349_000),
        model: Some("coder".to_owned()),
        took_ms: 1000.25,
        ..RequestReport::completed("req_1".to_owned())
    }
}

/// The spans of a request, which have the bytes that prost writes for them.
fn spans(report: &RequestReport, semconv: Semconv) -> Vec<Span> {
    let mut spans = Vec::new();
    let count = maker(semconv).add(report, &mut spans);
    let decoded = ScopeSpans::decode(&spans[..]).unwrap();
    assert_eq!(decoded.encode_to_vec(), spans);
    assert_eq!(decoded.spans.len() as u64, count);
    decoded.spans
}

/// The attributes of a span as texts.
fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let text = |value: &AnyValue| match value.value.as_ref().unwrap() {
        Value::String(text) => String::from_utf8(text.to_vec()).unwrap(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => format!("{number:?}"),
        Value::Array(ArrayValue { values }) => format!("{} values", values.len()),
    };
    let attributes = span.attributes.iter();
    attributes
        .map(|it| {
            (
                str::from_utf8(&it.key).unwrap(),
                text(it.value.as_ref().unwrap()),
            )
        })
        .collect()
}

fn expected<'a>(attributes: &[(&'a str, &str)]) -> BTreeMap<&'a str, String> {
    let attributes = attributes.iter();
    attributes
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

#[test]
fn a_fallback_is_a_server_span_with_a_client_span_for_each_attempt() {
    let mut report = report();
    report.admission = Some(Box::new(Admission {
        limits: vec![AppliedLimit {
            limit: "key *".to_owned(),
            key: None,
        }],
        queued_ms: Some(12.5),
        ..Admission::default()
    }));
    report.attempts = vec![
        AttemptReport {
            code: Some("upstream_error"),
            cause: Some("connection reset".to_owned()),
            ..attempt("house", AttemptResult::Failed)
        },
        AttemptReport {
            upstream_request_id: Some("abc".to_owned()),
            dropped: vec!["top_k".to_owned()],
            ..attempt("vendor", AttemptResult::Answered)
        },
    ];
    (report.input_tokens, report.output_tokens) = (Some(71), Some(13));
    (report.cache_read_tokens, report.cache_write_tokens) = (Some(30), Some(0));
    report.reasoning_tokens = Some(5);
    report.first_event_ms = Some(252.0);

    let spans = spans(&report, Semconv::V2026_10);
    let [server, failed, answered] = &spans[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(server.name, "POST /v1/messages");
    assert_eq!(server.kind(), SpanKind::Server);
    assert_eq!(&server.span_id[..], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(
        &server.parent_span_id[..],
        [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]
    );
    assert_eq!(server.flags, 0x301);
    assert_eq!(server.trace_state, "congo=t61rcWkgMzE");
    assert_eq!(server.start_time_unix_nano, 1_801_469_349_000_000_000);
    assert_eq!(server.end_time_unix_nano, 1_801_469_350_000_250_000);
    assert_eq!(server.status, None);
    assert_eq!(
        attributes(server),
        expected(&[
            ("http.request.method", "POST"),
            ("http.route", "/v1/messages"),
            ("url.scheme", "http"),
            ("url.path", "/v1/messages"),
            ("server.address", "gate.example"),
            ("server.port", "8080"),
            ("http.response.status_code", "200"),
            ("sluicegate.request_id", "req_1"),
            ("sluicegate.key", "team"),
            ("sluicegate.model", "coder"),
            ("sluicegate.outcome", "completed"),
            ("sluicegate.target", "vendor"),
            ("sluicegate.admitted_by", "1 values"),
            ("sluicegate.queue_ms", "12.5"),
            ("sluicegate.dropped", "1 values"),
            ("sluicegate.first_event_ms", "252.0"),
        ])
    );

    for attempt in [failed, answered] {
        assert_eq!(attempt.name, "chat large");
        assert_eq!(attempt.kind(), SpanKind::Client);
        assert_eq!(attempt.trace_id, server.trace_id);
        assert_eq!(attempt.parent_span_id, server.span_id);
        assert_eq!(attempt.flags, 0x101);
        assert_eq!(attempt.trace_state, "congo=t61rcWkgMzE");
    }
    assert_ne!(failed.span_id, answered.span_id);
    assert_eq!(
        failed.end_time_unix_nano - failed.start_time_unix_nano,
        250_000_000
    );
    let status = failed.status.as_ref().unwrap();
    assert_eq!(status.code(), StatusCode::Error);
    assert_eq!(status.message, "connection reset");
    assert_eq!(
        attributes(failed),
        expected(&[
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "openai"),
            ("gen_ai.request.model", "large"),
            ("gen_ai.request.stream", "true"),
            ("server.address", "house.example"),
            ("server.port", "8000"),
            ("sluicegate.target", "house"),
            ("error.type", "upstream_error"),
        ])
    );
    assert_eq!(answered.end_time_unix_nano, server.end_time_unix_nano);
    assert_eq!(
        attributes(answered),
        expected(&[
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "anthropic"),
            ("gen_ai.request.model", "large"),
            ("gen_ai.request.stream", "true"),
            ("gen_ai.response.time_to_first_chunk", "0.25"),
            ("gen_ai.usage.input_tokens", "71"),
            ("gen_ai.usage.cache_read.input_tokens", "30"),
            ("gen_ai.usage.cache_write.input_tokens", "0"),
            ("gen_ai.usage.output_tokens", "13"),
            ("gen_ai.usage.reasoning.output_tokens", "5"),
            ("server.address", "api.anthropic.com"),
            ("server.port", "443"),
            ("sluicegate.target", "vendor"),
            ("sluicegate.upstream_request_id", "abc"),
            ("sluicegate.dropped", "1 values"),
        ])
    );
}

#[test]
fn older_dashboards_get_the_names_of_their_version() {
    let mut report = report();
    report.attempts = vec![attempt("house", AttemptResult::Answered)];
    (report.input_tokens, report.output_tokens) = (Some(71), Some(13));
    report.cache_read_tokens = Some(30);
    let spans = spans(&report, Semconv::V1_36);
    assert_eq!(
        attributes(&spans[1]),
        expected(&[
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.system", "openai"),
            ("gen_ai.request.model", "large"),
            ("gen_ai.usage.input_tokens", "71"),
            ("gen_ai.usage.output_tokens", "13"),
            ("server.address", "house.example"),
            ("server.port", "8000"),
            ("sluicegate.target", "house"),
        ])
    );
}

#[test]
fn a_stream_that_breaks_off_is_an_error_of_both_spans() {
    let mut report = report();
    report.outcome = Outcome::UpstreamTruncated;
    report.cause = Some("connection reset by peer".to_owned());
    report.attempts = vec![attempt("house", AttemptResult::Answered)];
    for span in spans(&report, Semconv::V2026_10) {
        assert_eq!(attributes(&span)["error.type"], "upstream_truncated");
        let status = span.status.unwrap();
        assert_eq!(status.code(), StatusCode::Error);
        assert_eq!(status.message, "connection reset by peer");
    }
}

#[test]
fn a_refusal_is_no_error_and_names_its_limit() {
    let mut report = report();
    (report.outcome, report.status) = (Outcome::Shed, 429);
    report.code = Some("rate_limit_exceeded");
    report.admission = Some(Box::new(Admission {
        refused_by: Some(RefusingLimit {
            limit: "key *".into(),
            dimension: "requests_per_minute",
            retry_after_ms: None,
        }),
        ..Admission::default()
    }));
    let spans = spans(&report, Semconv::V2026_10);
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0].status, None);
    let attributes = attributes(&spans[0]);
    assert_eq!(attributes["http.response.status_code"], "429");
    assert_eq!(attributes["sluicegate.refused_by"], "key *");
    assert!(!attributes.contains_key("error.type"));
}

#[test]
fn pictures_of_the_embedded_engine_are_made_within_the_process() {
    let mut report = report();
    report.route = "image_generations";
    report.attempts = vec![AttemptReport {
        road: Road::Embedded,
        ..attempt("embedded", AttemptResult::Answered)
    }];
    let spans = spans(&report, Semconv::V2026_10);
    assert_eq!(spans[0].name, "POST /v1/images/generations");
    assert_eq!(spans[1].name, "generate_content large");
    assert_eq!(spans[1].kind(), SpanKind::Internal);
    let attributes = attributes(&spans[1]);
    assert_eq!(attributes["gen_ai.output.type"], "image");
    assert_eq!(attributes["gen_ai.provider.name"], "sluicegate");
    assert!(!attributes.contains_key("server.address"));
}

#[test]
fn a_request_without_a_trace_has_no_spans() {
    let mut report = report();
    report.trace = None;
    assert!(spans(&report, Semconv::V2026_10).is_empty());
}

/// The package `opentelemetry-proto` 1.45.2 of PyPI writes these bytes for the same message.
#[test]
fn messages_have_the_bytes_of_the_reference_implementation() {
    const BYTES: &str = "0ad4010a1e0a1c0a0c736572766963652e6e616d65120c0a0a736c756963656761746512b1010a0c\
        0a0a736c756963656761746512a0010a104bf92f3577b34da6a3ce929d0e0e473612080102030405\
        060708220800f067aa0ba902b72a0a63686174206c617267653003390032e60cd41a0019410732e6\
        0cd41a00194a090a017412040a02c3a94a070a0162120210004a100a0169120b18ffffffffffffff\
        ffff014a0e0a0164120921000000000000e03f4a110a016c120c2a0a0a030a01780a030a01797a09\
        120572657365741802850101030000";
    let span_id = |bits| Bytes::copy_from_slice(&SpanId::new(bits).to_bytes());
    let text = |text: &'static str| AnyValue {
        value: Some(text.into()),
    };
    let list = vec![text("x"), text("y")];
    let span = Span {
        trace_id: TraceId::new(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736)
            .to_bytes()
            .to_vec()
            .into(),
        span_id: span_id(0x0102_0304_0506_0708),
        trace_state: Bytes::new(),
        parent_span_id: span_id(0x00f0_67aa_0ba9_02b7),
        name: "chat large".into(),
        kind: SpanKind::Client.into(),
        start_time_unix_nano: 1_801_469_349_000_000_000,
        end_time_unix_nano: 1_801_469_349_000_000_007,
        attributes: vec![
            KeyValue::new("t", "é"),
            KeyValue::new("b", Value::Bool(false)),
            KeyValue::new("i", Value::Int(-1)),
            KeyValue::new("d", Value::Double(0.5)),
            KeyValue::new("l", Value::Array(ArrayValue { values: list })),
        ],
        status: Some(Status {
            message: "reset".into(),
            code: StatusCode::Error.into(),
        }),
        flags: 0x301,
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: vec![KeyValue::new("service.name", "sluicegate")],
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: "sluicegate".into(),
                    version: Bytes::new(),
                }),
                spans: vec![span],
            }],
        }],
    };
    let written = request.encode_to_vec();
    let written: String = written.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, BYTES);
}
