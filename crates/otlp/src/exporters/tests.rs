//! Tests of the exporters with a collector in memory.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use network::{Peer, World};
use policy::Policy;
use policy::lifecycle::Lifecycle;
use policy::limit::Limiter;
use prost::Message as _;
use telemetry::requests::report::RequestReport;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::sleep;

use super::*;
use crate::messages::metrics::{ExportMetricsServiceRequest, Metric};
use crate::messages::{ExportTraceServiceRequest, KeyValue};
use crate::trace_exporter::ACCUMULATE;

/// The paths and the bodies of the exports that a collector has received.
type Received = Arc<Mutex<Vec<(String, Bytes)>>>;

/// The bytes of a response that rejects a span, as the package `opentelemetry-proto` 1.45.2 of PyPI
/// writes them.
const PARTIAL: &[u8] = b"\x0a\x0b\x08\x01\x12\x07too old";

fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Answers every export with the same bytes.
async fn collect(mut peer: Peer, received: Received, answer: Vec<u8>) {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = peer.io.read_u8().await else {
                return;
            };
            head.push(byte);
        }
        let head = String::from_utf8(head).unwrap();
        let path = head
            .strip_prefix("POST ")
            .and_then(|rest| rest.split_once(' '));
        let (path, _) = path.unwrap_or_else(|| panic!("{head}"));
        assert!(
            head.contains("content-type: application/x-protobuf\r\n"),
            "{head}"
        );
        assert!(head.contains("authorization: Bearer secret\r\n"), "{head}");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        peer.io.read_exact(&mut body).await.unwrap();
        received
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((path.to_owned(), body.into()));
        let _ = peer.io.write_all(&answer).await;
    }
}

/// A collector that gives this answer, and an exporter to it.
fn exporting_to(answer: Vec<u8>) -> (Received, Arc<TraceQueue>, RunningExporters) {
    let (world, received) = (World::default(), Received::default());
    let exports = Arc::clone(&received);
    world.serve("collector.example", move |_, peer| {
        collect(peer, Arc::clone(&exports), answer.clone())
    });
    let (queue, running) = exporting_over(&world);
    (received, queue, running)
}

fn exporting_over(world: &World) -> (Arc<TraceQueue>, RunningExporters) {
    let key = std::env::temp_dir().join(format!("sluicegate-otlp-{:x}", clock::random_bits()));
    std::fs::write(&key, "secret").unwrap();
    let collector =
        format!("endpoint = \"http://collector.example\"\napi_key = {{ file = {key:?} }}\n");
    let text = format!("[traces]\n{collector}[metrics]\n{collector}");
    let config = Config::parse(&text).unwrap();
    let network = Network {
        resolver: Arc::new(world.clone()),
        dialer: Arc::new(world.clone()),
        ..Network::default()
    };
    let exporters = Exporters::new(&config, &network, "1.2.3").unwrap();
    std::fs::remove_file(key).unwrap();
    let (policy, _) = Policy::read(&config, false, network).unwrap();
    let policies = Policies::new(policy, Arc::new(Limiter::new(1, 1)), Lifecycle::new());
    let queue = exporters.queue().unwrap();
    let render = || {
        "# HELP up_seconds Since the start.\n# TYPE up_seconds gauge\n# UNIT up_seconds seconds\nup_seconds 1.5\n".to_owned()
    };
    (queue, exporters.start(Arc::new(policies), render))
}

fn offer(queue: &TraceQueue, requests: usize) {
    for _ in 0..requests {
        let trace = queue.begin(None, clock::random_bits);
        queue.offer(&Arc::new(RequestReport::traced(trace)));
    }
}

/// The numbers of spans that were sent, found no room, failed and were rejected.
fn counts(queue: &TraceQueue) -> Vec<u64> {
    queue.counts().map(|(_, spans)| spans).collect()
}

/// The exports of traces.
fn traces(received: &Received) -> Vec<ExportTraceServiceRequest> {
    let received = received.lock().unwrap();
    let exports = received.iter().filter(|(path, _)| path == "/v1/traces");
    exports
        .map(|(_, body)| ExportTraceServiceRequest::decode(body.clone()).unwrap())
        .collect()
}

/// The metrics of each export of metrics.
fn metrics(received: &Received) -> Vec<Vec<Metric>> {
    let received = received.lock().unwrap();
    let exports = received.iter().filter(|(path, _)| path == "/v1/metrics");
    exports
        .map(|(_, body)| ExportMetricsServiceRequest::decode(body.clone()).unwrap())
        .map(|export| export.resource_metrics[0].scope_metrics[0].metrics.clone())
        .collect()
}

fn lengths(received: &Received) -> Vec<usize> {
    let lengths = traces(received)
        .into_iter()
        .map(|export| export.resource_spans[0].scope_spans[0].spans.len());
    lengths.collect()
}

#[tokio::test(start_paused = true)]
async fn spans_are_sent_in_batches_after_a_while_or_at_the_end() {
    let (received, queue, running) = exporting_to(response("200 OK", b""));
    offer(&queue, 3);
    sleep(2 * ACCUMULATE).await;
    assert_eq!(lengths(&received), [3]);
    offer(&queue, 1000);
    running.finish().await;
    assert_eq!(lengths(&received), [3, 512, 488]);
    assert_eq!(counts(&queue), [1003, 0, 0, 0]);
    let traces = traces(&received);
    let resource = traces[0].resource_spans[0].resource.as_ref().unwrap();
    let version = KeyValue::new("service.version", "1.2.3");
    assert!(resource.attributes.contains(&version), "{resource:?}");
}

#[tokio::test(start_paused = true)]
async fn a_partial_success_counts_the_rejected_spans() {
    let (_, queue, running) = exporting_to(response("200 OK", PARTIAL));
    offer(&queue, 3);
    running.finish().await;
    assert_eq!(counts(&queue), [2, 0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_refuses_or_is_none_costs_the_spans() {
    for answer in [
        response("400 Bad Request", b""),
        response("500 Internal Server Error", b"oops"),
        response("200 OK", b"<html>"),
        b"nonsense\r\n\r\n".to_vec(),
    ] {
        let (_, queue, running) = exporting_to(answer.clone());
        offer(&queue, 3);
        running.finish().await;
        let answer = String::from_utf8_lossy(&answer);
        assert_eq!(counts(&queue), [0, 0, 3, 0], "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_is_gone_costs_the_spans_until_it_is_back() {
    let world = World::default();
    world.refuse("collector.example");
    let (queue, running) = exporting_over(&world);
    offer(&queue, 3);
    sleep(2 * ACCUMULATE).await;
    assert_eq!(counts(&queue), [0, 0, 3, 0]);
    let received = Received::default();
    let exports = Arc::clone(&received);
    world.serve("collector.example", move |_, peer| {
        collect(peer, Arc::clone(&exports), response("200 OK", b""))
    });
    offer(&queue, 2);
    running.finish().await;
    assert_eq!(counts(&queue), [2, 0, 3, 0]);
}

/// The queue fills up behind an export that takes long, and requests are still not held up. The end
/// does not wait for it longer than five seconds.
#[tokio::test(start_paused = true)]
async fn a_collector_that_does_not_answer_holds_up_nothing() {
    let (_, queue, running) = exporting_to(Vec::new());
    offer(&queue, 3);
    sleep(2 * ACCUMULATE).await;
    offer(&queue, 5000);
    assert_eq!(counts(&queue), [0, 5000 - 4096, 0, 0]);
    let begun = Instant::now();
    running.finish().await;
    assert_eq!(begun.elapsed().as_secs(), 5);
}

/// An export that takes longer than its timeout is lost, and the next one is sent.
#[tokio::test(start_paused = true)]
async fn an_export_has_a_timeout() {
    let (received, queue, running) = exporting_to(Vec::new());
    offer(&queue, 3);
    sleep(Duration::from_secs(11)).await;
    assert_eq!(counts(&queue), [0, 0, 3, 0]);
    offer(&queue, 1);
    sleep(2 * ACCUMULATE).await;
    assert_eq!(lengths(&received), [3, 1]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn metrics_are_sent_every_minute_and_at_the_end() {
    let (received, _queue, running) = exporting_to(response("200 OK", b""));
    sleep(Duration::from_secs(59)).await;
    assert!(metrics(&received).is_empty());
    sleep(Duration::from_secs(2)).await;
    assert_eq!(metrics(&received).len(), 1);
    sleep(Duration::from_secs(60)).await;
    running.finish().await;
    let exports = metrics(&received);
    assert_eq!(exports.len(), 3);
    assert_eq!(exports[2][0].name, "up");
    assert_eq!(exports[2][0].unit, "s");
}

/// Cumulative metrics lose nothing but the values of the time for which the collector was away.
#[tokio::test(start_paused = true)]
async fn metrics_are_sent_again_once_the_collector_is_back() {
    let world = World::default();
    world.refuse("collector.example");
    let (_queue, running) = exporting_over(&world);
    sleep(Duration::from_secs(61)).await;
    let received = Received::default();
    let exports = Arc::clone(&received);
    world.serve("collector.example", move |_, peer| {
        collect(peer, Arc::clone(&exports), response("200 OK", b""))
    });
    sleep(Duration::from_secs(60)).await;
    assert_eq!(metrics(&received).len(), 1);
    drop(running);
}

#[test]
fn each_section_reports_its_problems() {
    let settings = "endpoint = \"http://c\"\nca_file = \"/nowhere/ca.pem\"\n";
    let text = format!("[traces]\n{settings}[metrics]\n{settings}");
    let config = Config::parse(&text).unwrap();
    let problems = Exporters::new(&config, &Network::default(), "1.2.3")
        .err()
        .unwrap();
    let missing = "ca_file: /nowhere/ca.pem: No such file or directory (os error 2)";
    assert_eq!(
        problems,
        [format!("traces.{missing}"), format!("metrics.{missing}")]
    );
}

#[test]
fn the_url_of_a_collector_has_the_name_of_its_setting() {
    for (endpoint, problem) in [
        (
            "ftp://collector",
            "traces: `endpoint` has the scheme `ftp`; `http` and `https` are accepted.",
        ),
        (
            "http://me:secret@collector",
            "traces: `endpoint` has a user or password; it must not have one.",
        ),
        (
            "http://collector/#a",
            "traces: `endpoint` has a fragment; it must not have one.",
        ),
    ] {
        let config = Config::parse(&format!("[traces]\nendpoint = \"{endpoint}\"\n")).unwrap();
        let made = Exporters::new(&config, &Network::default(), "1.2.3");
        assert_eq!(made.err().unwrap(), [problem]);
    }
}
