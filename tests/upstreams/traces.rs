//! Traces and metrics that a collector receives, and the ids of traces that upstreams get.

use std::collections::BTreeMap;

use bytes::Bytes;
use otlp::messages::metrics::{ExportMetricsServiceRequest, ResourceMetrics};
use otlp::messages::{AnyValue, ExportTraceServiceRequest, Resource, Span, SpanKind, Value};
use prost::Message as _;
use simulator::{Play, Protocol, Simulator, honest};
use testkit::requests::{ask, path};
use testkit::{CLIENT_KEY, Config, Gateway, Request, Response, await_that, log};

use crate::GATEWAY;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
/// The example of <https://www.w3.org/TR/trace-context/>.
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const ADMIN: &str = "sg_test_admin_key_00000000000000000000";

/// A collector that accepts everything.
fn collector() -> Simulator {
    let kind = [("content-type", "application/x-protobuf")];
    Simulator::start(move |_| Play::answer(200, &kind, Bytes::new())).unwrap()
}

/// The bodies of the exports to this path.
fn exports(collector: &Simulator, path: &str) -> Vec<Bytes> {
    let exports = collector.requests().into_iter();
    let exports = exports.filter(|export| export.path == path);
    exports.map(|export| export.body).collect()
}

/// The spans that a collector has received, by their names.
fn spans(collector: &Simulator) -> BTreeMap<String, Span> {
    let exports = exports(collector, "/v1/traces").into_iter();
    let exports = exports.map(|body| ExportTraceServiceRequest::decode(body).unwrap());
    let resources = exports.flat_map(|export| export.resource_spans);
    let scopes = resources.flat_map(|resource| resource.scope_spans);
    scopes
        .flat_map(|scope| scope.spans)
        .map(|span| (String::from_utf8(span.name.to_vec()).unwrap(), span))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of an attribute.
fn text(span: &Span, name: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|it| it.key == name)?;
    match &attribute.value {
        Some(AnyValue {
            value: Some(Value::String(text)),
        }) => Some(String::from_utf8(text.to_vec()).unwrap()),
        other => panic!("{name}: {other:?}"),
    }
}

/// A gateway that exports to a collector with these settings. Its model `mine` is at the server
/// `gone`, and then at `house`, which has the settings `upstream`.
fn gateway(traces: &str, collector: &str, gone: &str, house: &str, upstream: &str) -> Gateway {
    let targets = r#"[{ upstream = "gone" }, { upstream = "house", model = "large" }]"#;
    let mut command = GATEWAY.command();
    command.env("SLUICEGATE_ADMIN_KEY", ADMIN);
    Config::new("lame_duck = \"0s\"")
        .section(&format!("[traces]\nendpoint = \"{collector}\"\n{traces}"))
        .upstream("gone", Protocol::Chat, gone, "trace = true")
        .upstream("house", Protocol::Chat, house, upstream)
        .model("mine", Protocol::Chat, targets)
        .start_by(GATEWAY, command)
}

/// Sends a request, which is a part of a trace of the client if it has `traceparent`.
fn send(gateway: &Gateway, traceparent: Option<&str>) -> Response {
    let body = ask(Protocol::Messages, "mine", "Hello.", true);
    let mut request = Request::post(path(Protocol::Messages), &body)
        .bearer(CLIENT_KEY)
        .header("tracestate", "rojo=00f067aa0ba902b7")
        .header("tracestate", "congo=t61rcWkgMzE");
    if let Some(value) = traceparent {
        request = request.header("traceparent", value);
    }
    let response = request.send(gateway.address());
    assert_eq!(response.status, 200, "{}", response.text());
    response
}

/// The URL of a server that listens no more.
fn gone() -> String {
    Simulator::honest().unwrap().base_url()
}

fn url(simulator: &Simulator) -> String {
    format!("http://{}", simulator.address())
}

fn spans_by(gateway: &Gateway, result: &str) -> f64 {
    gateway.sum_of("sluicegate_spans_total", &format!("result=\"{result}\""))
}

#[test]
fn a_trace_goes_from_the_client_to_the_upstream_and_the_log() {
    let (collector, house) = (collector(), Simulator::honest().unwrap());
    let gateway = gateway(
        "",
        &url(&collector),
        &gone(),
        &house.base_url(),
        "trace = true",
    );
    let response = send(&gateway, Some(TRACEPARENT));
    let id = response.header("x-request-id").unwrap();
    await_that("the spans arrive", || spans(&collector).len() == 3);
    let spans = spans(&collector);
    let [server, failed, answered] =
        ["POST /v1/messages", "chat mine", "chat large"].map(|name| &spans[name]);
    assert_eq!(server.kind(), SpanKind::Server);
    assert_eq!(hex(&server.trace_id), TRACE);
    assert_eq!(hex(&server.parent_span_id), "00f067aa0ba902b7");
    assert_eq!(text(server, "sluicegate.request_id").as_deref(), Some(id));
    for attempt in [failed, answered] {
        assert_eq!(attempt.kind(), SpanKind::Client);
        assert_eq!(attempt.trace_id, server.trace_id);
        assert_eq!(attempt.parent_span_id, server.span_id);
    }
    assert_eq!(text(failed, "sluicegate.target").as_deref(), Some("gone"));
    assert_eq!(
        text(failed, "error.type").as_deref(),
        Some("upstream_error")
    );
    assert_eq!(
        text(answered, "sluicegate.target").as_deref(),
        Some("house")
    );
    assert_eq!(text(answered, "error.type"), None);

    let asked = house.requests().pop().unwrap();
    let sent = format!("00-{TRACE}-{}-01", hex(&answered.span_id));
    assert_eq!(asked.header("traceparent"), Some(sent.as_str()));
    let state = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
    assert_eq!(asked.header("tracestate"), Some(state));
    assert_eq!(server.trace_state, state);
    assert_eq!(log::line(&gateway, &response)["trace_id"], TRACE);
    let explained = GATEWAY
        .administer(&gateway, ADMIN, &["explain", id])
        .unwrap();
    let first = explained.lines().next().unwrap();
    assert!(
        first.ends_with(&format!(" Its trace: {TRACE}.")),
        "{explained}"
    );
    let metrics = Request::get("/metrics").send(gateway.admin.unwrap());
    let span = hex(&server.span_id);
    let exemplar = format!("# {{trace_id=\"{TRACE}\",span_id=\"{span}\"}}");
    let mut lines = metrics.text().lines();
    assert!(
        lines.any(|line| {
            line.starts_with("gen_ai_server_time_to_first_token_seconds_bucket{")
                && line.contains("gen_ai_request_model=\"mine\",target=\"house\"")
                && line.contains(&exemplar)
        }),
        "{}",
        metrics.text()
    );
    await_that("all are counted", || spans_by(&gateway, "sent") == 3.0);
}

#[test]
fn only_named_upstreams_get_a_valid_trace() {
    let (collector, house) = (collector(), Simulator::honest().unwrap());
    let base_url = house.base_url();
    let closed = gateway("", &url(&collector), &base_url, &base_url, "");
    let invalid = TRACEPARENT.replace(TRACE, "00000000000000000000000000000000");
    let response = send(&closed, Some(&invalid));
    // The first target has `trace = true`.
    let asked = house.requests().pop().unwrap();
    let line = log::line(&closed, &response);
    let trace = line["trace_id"].as_str().unwrap();
    assert_ne!(trace, "00000000000000000000000000000000");
    let sent = asked.header("traceparent").unwrap();
    assert!(sent.starts_with(&format!("00-{trace}-")), "{sent}");
    // It belongs to the trace that was not continued.
    assert_eq!(asked.header("tracestate"), None);

    let open = gateway("", &url(&collector), &gone(), &base_url, "");
    send(&open, Some(TRACEPARENT));
    let asked = house.requests().pop().unwrap();
    assert_eq!(asked.model(), "large");
    assert_eq!(asked.header("traceparent"), None);
    assert_eq!(asked.header("tracestate"), None);
}

/// With the ratio 0 a request is exported only if something failed: here the first target, from the
/// second request on.
#[test]
fn failures_are_exported_also_if_no_others_are() {
    let (collector, house) = (collector(), Simulator::honest().unwrap());
    let first = Simulator::start(|request| match request.number {
        0 => honest::answer(request),
        _ => Play::new().reset(),
    });
    let first = first.unwrap();
    let gateway = gateway(
        "ratio = 0.0",
        &url(&collector),
        &first.base_url(),
        &house.base_url(),
        "",
    );
    send(&gateway, None);
    let failed = send(&gateway, None);
    await_that("the failure arrives", || !spans(&collector).is_empty());
    let trace = hex(&spans(&collector)["POST /v1/messages"].trace_id);
    assert_eq!(log::line(&gateway, &failed)["trace_id"], trace);
    await_that("all are counted", || spans_by(&gateway, "sent") == 3.0);
}

/// Whatever a collector does, requests are answered, and its spans are counted.
#[test]
fn a_collector_that_is_away_or_wrong_only_costs_its_spans() {
    let honest = Simulator::honest().unwrap();
    let base_url = honest.base_url();
    let refusing = Simulator::start(|_| Play::answer(500, &[], "oops")).unwrap();
    // `rejected_spans` 1, `error_message` "too old".
    let partial =
        Simulator::start(|_| Play::answer(200, &[], &b"\x0a\x0b\x08\x01\x12\x07too old"[..]));
    let silent = Simulator::start(|_| Play::new().hold()).unwrap();
    let away = Simulator::honest().unwrap().address();
    for (collector, expected) in [
        (format!("http://{away}"), [("failed", 2.0), ("sent", 0.0)]),
        (url(&refusing), [("failed", 2.0), ("sent", 0.0)]),
        (url(&partial.unwrap()), [("rejected", 1.0), ("sent", 1.0)]),
        (url(&silent), [("failed", 2.0), ("sent", 0.0)]),
    ] {
        let traces = "timeout = \"1s\"";
        let gateway = gateway(traces, &collector, &base_url, &base_url, "");
        send(&gateway, None);
        await_that("the spans are counted", || {
            expected
                .iter()
                .all(|(result, count)| spans_by(&gateway, result) == *count)
        });
        send(&gateway, None);
        gateway.await_quiet();
    }
}

#[test]
fn the_last_spans_are_sent_during_the_shutdown() {
    let (collector, honest) = (collector(), Simulator::honest().unwrap());
    let base_url = honest.base_url();
    let mut gateway = gateway("", &url(&collector), &base_url, &base_url, "");
    send(&gateway, None);
    gateway.signal("INT");
    assert!(gateway.wait().success());
    assert_eq!(spans(&collector).len(), 2);
}

/// The last export of a process has all of its requests, and the attributes of the same process as its
/// spans.
#[test]
fn metrics_are_exported_also_during_the_shutdown() {
    let (collector, honest) = (collector(), Simulator::honest().unwrap());
    let base_url = honest.base_url();
    let metrics = format!("[metrics]\nendpoint = \"{}\"\n", url(&collector));
    let mut gateway = gateway(&metrics, &url(&collector), &base_url, &base_url, "");
    send(&gateway, None);
    gateway.signal("INT");
    assert!(gateway.wait().success());
    let exported = exports(&collector, "/v1/metrics").pop().unwrap();
    let exported = ExportMetricsServiceRequest::decode(exported).unwrap();
    let [
        ResourceMetrics {
            resource,
            scope_metrics,
        },
    ] = &exported.resource_metrics[..]
    else {
        panic!("{exported:?}")
    };
    let mut names = scope_metrics[0].metrics.iter().map(|metric| &metric.name);
    assert!(names.any(|name| name == "gen_ai.server.request.duration"));
    let traced = exports(&collector, "/v1/traces").pop().unwrap();
    let traced = ExportTraceServiceRequest::decode(traced).unwrap();
    assert_eq!(resource, &traced.resource_spans[0].resource);
    let Some(Resource { attributes }) = resource else {
        panic!("{exported:?}")
    };
    let mut names = attributes.iter().map(|it| &it.key);
    assert!(names.any(|name| name == "service.instance.id"));
}
