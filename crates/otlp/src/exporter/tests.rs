//! Tests of the exporter with a collector in memory.

use std::sync::{Mutex, PoisonError};

use config::Config;
use network::{Peer, World};
use policy::Policy;
use policy::lifecycle::Lifecycle;
use policy::limit::Limiter;
use telemetry::outcome::Outcome;
use telemetry::requests::report::ReceivedAt;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// The exports that a collector has received.
type Received = Arc<Mutex<Vec<ExportTraceServiceRequest>>>;

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
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
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
        let export = ExportTraceServiceRequest::decode(&body[..]).unwrap();
        received
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(export);
        let _ = peer.io.write_all(&answer).await;
    }
}

/// A collector that gives this answer, and an exporter to it.
fn exporting_to(answer: Vec<u8>) -> (Received, Arc<TraceQueue>, RunningExporter) {
    let (world, received) = (World::default(), Received::default());
    let exports = Arc::clone(&received);
    world.serve("collector.example", move |_, peer| {
        collect(peer, Arc::clone(&exports), answer.clone())
    });
    let (queue, running) = exporting_over(&world);
    (received, queue, running)
}

fn exporting_over(world: &World) -> (Arc<TraceQueue>, RunningExporter) {
    let key = std::env::temp_dir().join(format!("sluicegate-otlp-{:x}", clock::random_bits()));
    std::fs::write(&key, "secret").unwrap();
    let text = format!(
        "[traces]\nendpoint = \"http://collector.example\"\napi_key = {{ file = {key:?} }}\n"
    );
    let config = Config::parse(&text).unwrap();
    let network = Network {
        resolver: Arc::new(world.clone()),
        dialer: Arc::new(world.clone()),
        ..Network::default()
    };
    let exporter = Exporter::new(&config.traces, &network, "1.2.3").unwrap();
    std::fs::remove_file(key).unwrap();
    let (policy, _) = Policy::read(&config, false, network).unwrap();
    let policies = Policies::new(policy, Arc::new(Limiter::new(1, 1)), Lifecycle::new());
    (exporter.queue(), exporter.start(Arc::new(policies)))
}

fn offer(queue: &TraceQueue, requests: usize) {
    for _ in 0..requests {
        queue.offer(&Arc::new(RequestReport {
            request_id: "req_1".to_owned(),
            client_request_id: None,
            trace: Some(queue.begin(None, clock::random_bits)),
            at: ReceivedAt(0),
            route: "messages",
            key: "team".into(),
            model: None,
            stream: false,
            outcome: Outcome::Completed,
            status: 200,
            code: None,
            cause: None,
            admission: None,
            attempts: Vec::new(),
            left_out: Vec::new(),
            input_tokens: None,
            cache_read_tokens: None,
            cache_write_tokens: None,
            output_tokens: None,
            reasoning_tokens: None,
            cost: None,
            first_event_ms: None,
            took_ms: 1.0,
        }));
    }
}

/// The numbers of spans that were sent, found no room, failed and were rejected.
fn counts(queue: &TraceQueue) -> Vec<u64> {
    queue.counts().map(|(_, spans)| spans).collect()
}

fn lengths(received: &Received) -> Vec<usize> {
    let received = received.lock().unwrap();
    let lengths = received
        .iter()
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
    let received = received.lock().unwrap();
    let resource = received[0].resource_spans[0].resource.as_ref().unwrap();
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
