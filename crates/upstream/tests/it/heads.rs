//! Heads of answers: late, strange, too large.

use std::time::Duration;

use engine::EngineError;
use sluicegate_upstream::{Failure, Incoming, MediaKind, Stage};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::world::{asking, ok, one};

/// What becomes of a request that is answered by these bytes.
async fn answered(bytes: impl Into<Vec<u8>>) -> Result<Incoming, Failure> {
    let bytes = bytes.into();
    let (_, upstream) = one(move |_, peer| peer.always(bytes.clone()));
    upstream.send(&asking("{}")).await
}

async fn assert_refused(bytes: impl Into<Vec<u8>>) {
    let failure = answered(bytes).await.unwrap_err();
    assert!(matches!(failure.error, EngineError::Upstream(_)), "{failure}");
    assert_eq!((failure.stage, failure.may_fail_over), (Stage::Head, false), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_is_given_up_and_its_connection_closed() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (_, upstream) = one(move |_, mut peer| {
        let tell = tell.clone();
        async move {
            peer.request().await;
            peer.gone().await;
            tell.send(Instant::now()).unwrap();
        }
    });
    let begun = Instant::now();
    let failure = upstream.send(&asking("{}")).await.unwrap_err();
    assert!(matches!(failure.error, EngineError::Timeout(_)), "{failure}");
    assert_eq!((failure.stage, failure.may_fail_over), (Stage::Head, false));
    let waited = begun.elapsed();
    assert!((Duration::from_millis(119_990)..Duration::from_millis(120_010)).contains(&waited), "{waited:?}");
    let closed = told.recv().await.unwrap();
    assert!(closed - begun - waited < Duration::from_millis(100), "{:?}", closed - begun);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_the_request_ends_it_before() {
    let (_, upstream) = one(|_, mut peer| async move { peer.gone().await });
    let deadline = Instant::now() + Duration::from_secs(7);
    let failure = upstream.ask(&asking("{}"), deadline, true).await.unwrap_err();
    assert!(matches!(failure.error, EngineError::Timeout(_)), "{failure}");
    assert!(deadline.elapsed() < Duration::from_millis(10));
}

#[tokio::test]
async fn a_dropped_request_closes_its_connection() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (_, upstream) = one(move |_, mut peer| {
        let tell = tell.clone();
        async move {
            peer.request().await;
            tell.send(()).unwrap();
            peer.gone().await;
            tell.send(()).unwrap();
        }
    });
    let asking_on = upstream.clone();
    let asking_on = tokio::spawn(async move { asking_on.send(&asking("{}")).await.map(|_| ()) });
    told.recv().await.unwrap();
    asking_on.abort();
    assert!(told.recv().await.is_some());
}

#[tokio::test]
async fn every_status_is_handed_out_and_no_redirect_followed() {
    for status in [200, 201, 204, 301, 302, 303, 304, 307, 308, 400, 401, 404, 429, 500, 503, 529, 599] {
        let head = format!("HTTP/1.1 {status} X\r\nLocation: http://a.example/v1/other\r\nContent-Length: 0\r\n\r\n");
        let (world, upstream) = one(move |_, peer| peer.always(head.clone()));
        let incoming = upstream.send(&asking("{}")).await.unwrap();
        assert_eq!(incoming.status, status);
        assert_eq!(incoming.body.collect(0).await.unwrap(), "");
        assert_eq!(world.dials(), 1);
    }
}

#[tokio::test]
async fn what_a_body_is_said_to_be() {
    for (said, kind) in [
        ("application/json", MediaKind::Json),
        ("Application/JSON; charset=utf-8", MediaKind::Json),
        ("application/problem+json", MediaKind::Json),
        ("text/event-stream; charset=utf-8", MediaKind::EventStream),
        ("text/html", MediaKind::Other),
        ("", MediaKind::Other),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {said}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(answered(head).await.unwrap().kind, kind, "{said}");
    }
}

#[tokio::test]
async fn retry_after_is_read() {
    for (said, read) in [
        ("7", Some(7)),
        ("0", Some(1)),
        ("1.5", Some(2)),
        ("1000000000", Some(30)),
        ("Tue, 31 Dec 2199 23:59:59 GMT", Some(30)),
        ("Fri, 31 Dec 1999 23:59:59 GMT", Some(1)),
        ("-5", None),
        ("soon", None),
        ("", None),
    ] {
        let head = format!("HTTP/1.1 429 X\r\nRetry-After: {said}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(answered(head).await.unwrap().retry_after, read, "{said}");
    }
    assert_eq!(answered(ok("")).await.unwrap().retry_after, None);
}

#[tokio::test]
async fn a_packed_body_is_refused() {
    for coding in ["gzip", "br", "zstd", "identity, gzip"] {
        assert_refused(format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: 0\r\n\r\n")).await;
    }
    let identity = "HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 0\r\n\r\n";
    assert!(answered(identity).await.is_ok());
}

#[tokio::test]
async fn heads_are_bounded() {
    let with = |headers: String| format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n");
    let many = |count: usize| with((0..count).map(|at| format!("x-{at}: y\r\n")).collect());
    assert!(answered(many(99)).await.is_ok());
    assert_refused(many(100)).await;
    assert_refused(many(10_000)).await;
    let long = |length: usize| with(format!("x: {}\r\n", "y".repeat(length)));
    assert!(answered(long(60 << 10)).await.is_ok());
    assert_refused(long(64 << 10)).await;
    assert_refused(long(100 << 10)).await;
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    for bytes in [
        "",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nx : y\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n",
    ] {
        let (_, upstream) = one(move |_, mut peer| async move {
            peer.request().await;
            peer.say(bytes).await;
        });
        let failure = upstream.send(&asking("{}")).await.unwrap_err();
        assert!(matches!(failure.error, EngineError::Upstream(_)), "{bytes}: {failure}");
        assert_eq!((failure.stage, failure.may_fail_over), (Stage::Head, false), "{bytes}");
    }
}

#[tokio::test]
async fn informational_heads_are_skipped() {
    let body = answered(format!("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{}", ok("then"))).await.unwrap().body;
    assert_eq!(body.collect(10).await.unwrap(), "then");
}

#[tokio::test]
async fn an_answer_that_does_not_wait_for_the_request_is_heard() {
    let (world, upstream) = one(|_, mut peer| async move {
        let mut first = [0; 100];
        peer.io.read_exact(&mut first).await.unwrap();
        peer.say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}").await;
        peer.gone().await;
    });
    for dials in 1..3 {
        let incoming = upstream.send(&asking("x".repeat(1 << 20))).await.unwrap();
        assert_eq!(incoming.status, 413);
        assert_eq!(incoming.body.collect(100).await.unwrap(), "{}");
        // What is left of the request would be read as the next one.
        assert_eq!(world.dials(), dials);
    }
}

#[tokio::test]
async fn the_status_is_heard_of_a_host_that_closes_on_the_request() {
    let (_, upstream) = one(|_, mut peer| async move {
        let mut first = [0; 100];
        peer.io.read_exact(&mut first).await.unwrap();
        peer.say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}").await;
    });
    let incoming = upstream.send(&asking("x".repeat(1 << 20))).await.unwrap();
    assert_eq!(incoming.status, 413);
}
