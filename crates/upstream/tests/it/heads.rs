//! Response heads: late, invalid, too large.

use std::time::Duration;

use engine::EngineError;
use http::HeaderName;
use network::{WITH_RETRY, World, for_stream, ok, options, post, send, send_once, single_host};
use sluicegate_upstream::{Incoming, Options};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// Sends a request to a server that responds with these bytes.
async fn respond_with(bytes: impl Into<Vec<u8>>) -> Result<Incoming, EngineError> {
    let bytes = bytes.into();
    let (_, upstream) = single_host(move |_, peer| peer.always(bytes.clone()));
    send_once(&upstream, &post("{}")).await
}

async fn assert_rejected(bytes: impl Into<Vec<u8>>) {
    let bytes = bytes.into();
    let (world, upstream) = single_host(move |_, peer| peer.always(bytes.clone()));
    let failure = send(&upstream).await.unwrap_err();
    assert!(matches!(failure, EngineError::Upstream(_)), "{failure}");
    assert_eq!(world.dials(), 1, "{failure}");
}

#[tokio::test(start_paused = true)]
async fn missing_head_times_out_and_closes_its_connection() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let (_, upstream) = single_host(move |_, mut peer| {
        let sender = sender.clone();
        async move {
            peer.request().await;
            peer.closed().await;
            sender.send(Instant::now()).unwrap();
        }
    });
    let started = Instant::now();
    let failure = send_once(&upstream, &for_stream()).await.unwrap_err();
    assert!(matches!(failure, EngineError::Unanswered(_)), "{failure}");
    let waited = started.elapsed();
    assert!(
        (Duration::from_millis(119_990)..Duration::from_millis(120_010)).contains(&waited),
        "{waited:?}"
    );
    let closed = events.recv().await.unwrap();
    assert!(
        closed - started - waited < Duration::from_millis(100),
        "{:?}",
        closed - started
    );
}

/// The head of a plain reply comes with its last token: only the deadline of the request ends the
/// wait for it.
#[tokio::test(start_paused = true)]
async fn the_head_of_a_plain_reply_is_waited_for_until_the_deadline() {
    let (_, upstream) = single_host(|_, mut peer| async move {
        peer.request().await;
        sleep(Duration::from_secs(500)).await;
        peer.send(ok("late")).await;
    });
    let response = send(&upstream).await.unwrap();
    assert_eq!(response.body.collect(4).await.unwrap(), "late");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_the_request_ends_it_before() {
    let (_, upstream) = single_host(|_, mut peer| async move { peer.closed().await });
    let deadline = Instant::now() + Duration::from_secs(7);
    let failure = upstream
        .send_with_retry(&post("{}"), deadline, WITH_RETRY)
        .await
        .unwrap_err();
    assert!(matches!(failure, EngineError::Unanswered(_)), "{failure}");
    assert!(deadline.elapsed() < Duration::from_millis(10));
}

#[tokio::test]
async fn a_dropped_request_closes_its_connection() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let (_, upstream) = single_host(move |_, mut peer| {
        let sender = sender.clone();
        async move {
            peer.request().await;
            sender.send(()).unwrap();
            peer.closed().await;
            sender.send(()).unwrap();
        }
    });
    let sender = upstream.clone();
    let pending = tokio::spawn(async move { send_once(&sender, &post("{}")).await.map(|_| ()) });
    events.recv().await.unwrap();
    pending.abort();
    assert!(events.recv().await.is_some());
}

#[tokio::test]
async fn every_status_is_handed_out_and_no_redirect_followed() {
    for status in [
        200, 201, 204, 301, 302, 303, 304, 307, 308, 400, 401, 404, 429, 500, 503, 529, 599,
    ] {
        let head = format!(
            "HTTP/1.1 {status} X\r\nLocation: http://a.example/v1/other\r\nContent-Length: 0\r\n\r\n"
        );
        let (world, upstream) = single_host(move |_, peer| peer.always(head.clone()));
        let incoming = send_once(&upstream, &post("{}")).await.unwrap();
        assert_eq!(incoming.status, status);
        assert_eq!(incoming.body.collect(0).await.unwrap(), "");
        assert_eq!(world.dials(), 1);
    }
}

#[tokio::test]
async fn event_streams_are_detected_by_content_type() {
    for (content_type, is_event_stream) in [
        ("application/json", false),
        ("text/event-stream", true),
        ("Text/Event-Stream; charset=utf-8", true),
        ("text/event-streams", false),
        ("", false),
    ] {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(
            respond_with(head).await.unwrap().is_event_stream,
            is_event_stream,
            "{content_type}"
        );
    }
}

#[tokio::test]
async fn retry_after_is_read() {
    for (value, seconds) in [
        ("7", Some(7)),
        ("0", Some(1)),
        ("1.5", Some(2)),
        ("600", Some(600)),
        ("1000000000", Some(3600)),
        ("Tue, 31 Dec 2199 23:59:59 GMT", Some(3600)),
        ("Fri, 31 Dec 1999 23:59:59 GMT", Some(1)),
        ("-5", None),
        ("soon", None),
        ("", None),
    ] {
        let head = format!("HTTP/1.1 429 X\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(
            respond_with(head).await.unwrap().retry_after,
            seconds,
            "{value}"
        );
    }
    // The SDK of OpenAI reads milliseconds first:
    // https://github.com/openai/openai-python/blob/main/src/openai/_base_client.py
    for (headers, seconds) in [
        ("retry-after-ms: 26500", Some(27)),
        ("x-ms-retry-after-ms: 26500", Some(27)),
        ("Retry-After: 30\r\nRetry-After-Ms: 26500", Some(27)),
        ("Retry-After: 30\r\nretry-after-ms: soon", Some(30)),
        ("retry-after-ms: 1", Some(1)),
        ("retry-after-ms: -1", None),
    ] {
        let head = format!("HTTP/1.1 429 X\r\n{headers}\r\nContent-Length: 0\r\n\r\n");
        let found = respond_with(head).await.unwrap().retry_after;
        assert_eq!(found, seconds, "{headers}");
    }
    assert_eq!(respond_with(ok("")).await.unwrap().retry_after, None);
}

#[tokio::test]
async fn a_body_in_an_unknown_coding_is_refused() {
    for coding in ["br", "identity, br", "gzip, gzip"] {
        assert_rejected(format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: 0\r\n\r\n"
        ))
        .await;
    }
    let brotli = "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(
        respond_with(brotli).await.unwrap_err().to_string(),
        "the upstream failed: unsupported content encoding 'br'"
    );
    for coding in [
        "", "identity", "Identity", "gzip", "deflate", "zstd", ", gzip",
    ] {
        let known =
            format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: 0\r\n\r\n");
        let incoming = respond_with(known).await.unwrap();
        assert_eq!(incoming.body.collect(0).await.unwrap(), "", "{coding}");
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let with = |headers: String| format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n");
    let many = |count: usize| with((0..count).map(|at| format!("x-{at}: y\r\n")).collect());
    assert!(respond_with(many(99)).await.is_ok());
    assert_rejected(many(100)).await;
    assert_rejected(many(10_000)).await;
    let long = |length: usize| with(format!("x: {}\r\n", "y".repeat(length)));
    assert!(respond_with(long(60 << 10)).await.is_ok());
    assert_rejected(long(64 << 10)).await;
    assert_rejected(long(100 << 10)).await;
}

#[tokio::test]
async fn non_http_responses_are_rejected() {
    for bytes in [
        "",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nx : y\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n",
    ] {
        let (world, upstream) = single_host(move |_, mut peer| async move {
            peer.request().await;
            peer.send(bytes).await;
        });
        let failure = send(&upstream).await.unwrap_err();
        assert!(
            matches!(failure, EngineError::Upstream(_)),
            "{bytes}: {failure}"
        );
        assert_eq!(world.dials(), 1, "{bytes}");
    }
}

#[tokio::test]
async fn informational_heads_are_skipped() {
    let body = respond_with(format!(
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{}",
        ok("then")
    ))
    .await
    .unwrap()
    .body;
    assert_eq!(body.collect(10).await.unwrap(), "then");
}

#[tokio::test]
async fn an_answer_that_does_not_wait_for_the_request_is_read() {
    let (world, upstream) = single_host(|_, mut peer| async move {
        let mut first = [0; 100];
        peer.io.read_exact(&mut first).await.unwrap();
        peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
            .await;
        peer.closed().await;
    });
    for dials in 1..3 {
        let incoming = send_once(&upstream, &post("x".repeat(1 << 20)))
            .await
            .unwrap();
        assert_eq!(incoming.status, 413);
        assert_eq!(incoming.body.collect(100).await.unwrap(), "{}");
        // The rest of the request would be read as the next one, so the connection is not reused.
        assert_eq!(world.dials(), dials);
    }
}

#[tokio::test]
async fn the_status_is_read_of_a_host_that_closes_on_the_request() {
    let (_, upstream) = single_host(|_, mut peer| async move {
        let mut first = [0; 100];
        peer.io.read_exact(&mut first).await.unwrap();
        peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
            .await;
    });
    let incoming = send_once(&upstream, &post("x".repeat(1 << 20)))
        .await
        .unwrap();
    assert_eq!(incoming.status, 413);
}

/// The upstream's id of a request is read from the headers of several vendors, if it is safe to log.
#[tokio::test]
async fn the_id_of_the_upstream_is_read() {
    for (headers, id) in [
        ("x-request-id: req_1", Some("req_1")),
        ("request-id: req_011CS", Some("req_011CS")),
        (
            "apim-request-id: 5e1f-7\r\nrequest-id: req_2",
            Some("req_2"),
        ),
        ("x-amzn-requestid: 0a-1b", Some("0a-1b")),
        ("x-request-id: a b", None),
        ("x-other: req_1", None),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\n{headers}\r\ncontent-length: 2\r\n\r\n{{}}");
        let meta = respond_with(bytes).await.unwrap().meta;
        assert_eq!(meta.request_id.as_deref(), id, "{headers}");
        assert_eq!(meta.passed, None);
    }
    let long = format!(
        "HTTP/1.1 200 OK\r\nx-request-id: {}\r\n\r\n",
        "a".repeat(129)
    );
    assert_eq!(respond_with(long).await.unwrap().meta.request_id, None);
}

/// The headers that the operator has named are kept for the client, with all their values.
#[tokio::test]
async fn named_headers_are_kept_for_the_client() {
    let world = World::default();
    let head = "HTTP/1.1 200 OK\r\nx-a: 1\r\nx-b: 2\r\nx-a: 3\r\ncontent-length: 0\r\n\r\n";
    world.serve("a.example", move |_, peer| peer.always(head));
    let upstream = world.upstream(Options {
        pass_headers: vec![
            HeaderName::from_static("x-a"),
            HeaderName::from_static("x-c"),
        ],
        ..options()
    });
    let passed = send(&upstream).await.unwrap().meta.passed.unwrap();
    let passed: Vec<_> = passed
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    assert_eq!(passed, [("x-a", &b"1"[..]), ("x-a", b"3")]);
}
