//! The retry, the fallback host, the circuit breaker and the retry budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use engine::EngineError;
use network::{
    ONCE, Peer, WITH_RETRY, World, for_stream, ok, options, post, response, send, send_once,
    single_host, with_fallback,
};
use sluicegate_upstream::{Effort, Upstream};
use tokio::time::{Instant, advance};

/// Starts a server that sends these responses in turn, then repeats the last one, over any number
/// of connections.
fn in_turn(responses: &[String]) -> (World, Upstream, Arc<AtomicUsize>) {
    let world = World::default();
    let requests = serve_in_turn(&world, "a.example", responses);
    let upstream = world.upstream(options());
    (world, upstream, requests)
}

fn serve_in_turn(world: &World, name: &str, responses: &[String]) -> Arc<AtomicUsize> {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let responses = Arc::new(responses.to_vec());
    world.serve(name, move |_, mut peer: Peer| {
        let (counted, responses) = (Arc::clone(&counted), Arc::clone(&responses));
        async move {
            while peer.request().await.is_some() {
                let turn = counted.fetch_add(1, Ordering::Relaxed);
                peer.send(&responses[turn.min(responses.len() - 1)]).await;
            }
        }
    });
    requests
}

fn status(status: u16) -> String {
    response(&format!("{status} X"), "{}")
}

fn unavailable(status: u16, retry_after: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nRetry-After: {retry_after}\r\nContent-Length: 0\r\n\r\n")
}

#[tokio::test]
async fn server_error_is_retried_once() {
    for code in [500, 502, 503, 529] {
        let (_, upstream, requests) = in_turn(&[status(code), ok("then")]);
        assert_eq!(send(&upstream).await.unwrap().status, 200, "{code}");
        assert_eq!(requests.load(Ordering::Relaxed), 2);
        let (_, upstream, requests) = in_turn(&[status(code), status(code), ok("too late")]);
        assert_eq!(send(&upstream).await.unwrap().status, code);
        assert_eq!(requests.load(Ordering::Relaxed), 2);
    }
}

#[tokio::test]
async fn every_other_status_is_an_answer() {
    for code in [200, 301, 400, 401, 404, 408, 409, 413, 422, 429, 501, 504] {
        let (_, upstream, requests) = in_turn(&[status(code), ok("never")]);
        assert_eq!(send(&upstream).await.unwrap().status, code);
        assert_eq!(requests.load(Ordering::Relaxed), 1, "{code}");
    }
}

#[tokio::test]
async fn who_does_not_want_a_retry_gets_none() {
    let (_, upstream, requests) = in_turn(&[status(503), ok("never")]);
    assert_eq!(send_once(&upstream, &post("{}")).await.unwrap().status, 503);
    assert_eq!(send_once(&upstream, &post("{}")).await.unwrap().status, 200);
    assert_eq!(requests.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_kept_when_it_is_short() {
    for (retry_after, waited) in [("0", 0), ("0.25", 250), ("1", 1000)] {
        let (_, upstream, _) = in_turn(&[unavailable(503, retry_after), ok("then")]);
        let started = Instant::now();
        assert_eq!(send(&upstream).await.unwrap().status, 200, "{retry_after}");
        let took = started.elapsed();
        let waited = Duration::from_millis(waited);
        assert!(
            (waited..waited + Duration::from_millis(5)).contains(&took),
            "{retry_after}: {took:?}"
        );
    }
    for retry_after in ["1.1", "2", "1000000000"] {
        let (_, upstream, requests) = in_turn(&[unavailable(503, retry_after), ok("never")]);
        assert_eq!(send(&upstream).await.unwrap().status, 503);
        assert_eq!(requests.load(Ordering::Relaxed), 1, "{retry_after}");
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_no_retry_for_which_there_is_no_time() {
    let (_, upstream, requests) = in_turn(&[unavailable(503, "1"), ok("never")]);
    let near = Instant::now() + Duration::from_millis(900);
    assert_eq!(
        upstream
            .send_with_retry(&post("{}"), near, WITH_RETRY)
            .await
            .unwrap()
            .status,
        503
    );
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_refused_connection_is_tried_once_more() {
    let world = World::default();
    world.refuse("a.example");
    assert!(send(&world.upstream(options())).await.is_err());
    assert_eq!(world.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn connect_timeout_is_not_retried() {
    let world = World::default();
    world.stall("a.example");
    let started = Instant::now();
    let failure = send(&world.upstream(options())).await.unwrap_err();
    assert!(matches!(failure, EngineError::Timeout(_)), "{failure}");
    assert!(
        started.elapsed() < Duration::from_millis(5_010),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(world.dials(), 1);
}

#[tokio::test]
async fn the_retry_goes_to_the_fallback_host() {
    let world = World::default();
    let main = serve_in_turn(&world, "a.example", &[status(503)]);
    let fallback = serve_in_turn(&world, "b.example", &[ok("from b")]);
    let upstream = world.upstream(with_fallback());
    let body = send(&upstream).await.unwrap().body;
    assert_eq!(body.collect(100).await.unwrap(), "from b");
    world.refuse("a.example");
    let upstream = world.upstream(with_fallback());
    assert_eq!(send(&upstream).await.unwrap().status, 200);
    assert_eq!(
        (
            main.load(Ordering::Relaxed),
            fallback.load(Ordering::Relaxed)
        ),
        (1, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_may_have_been_begun_is_not_repeated() {
    for stalls in [false, true] {
        let world = World::default();
        world.serve("a.example", move |_, mut peer| async move {
            peer.request().await;
            peer.send("HTTP/1.1 2").await;
            if stalls {
                peer.closed().await;
            }
        });
        let fallback = serve_in_turn(&world, "b.example", &[ok("never")]);
        assert!(send(&world.upstream(with_fallback())).await.is_err());
        assert_eq!(fallback.load(Ordering::Relaxed), 0, "{stalls}");
    }
}

#[tokio::test]
async fn retries_are_a_tenth_of_the_requests() {
    let (_, upstream, counted) = in_turn(&[status(500)]);
    for _ in 0..1_000 {
        assert_eq!(send(&upstream).await.unwrap().status, 500);
    }
    // The budget starts with ten.
    assert_eq!(counted.load(Ordering::Relaxed), 1_000 + 100 + 10 - 1);
}

/// Returns an upstream whose circuit breaker is open.
async fn opened(responses: &[String]) -> (World, Upstream, Arc<AtomicUsize>) {
    let (world, upstream, requests) = in_turn(responses);
    for _ in 0..20 {
        assert!(
            send_once(&upstream, &post("{}"))
                .await
                .unwrap()
                .status
                .is_server_error()
        );
    }
    assert_breaker_open(&upstream).await;
    (world, upstream, requests)
}

async fn assert_breaker_open(upstream: &Upstream) {
    let failure = send(upstream).await.unwrap_err();
    assert!(matches!(failure, EngineError::Unavailable(_)), "{failure}");
}

fn twenty(status: &str) -> Vec<String> {
    vec![status.to_owned(); 20]
}

#[tokio::test(start_paused = true)]
async fn twenty_failures_open_the_breaker_for_ten_seconds() {
    for code in [502, 503, 504] {
        let mut responses = twenty(&status(code));
        responses.push(ok("again"));
        let (_, upstream, requests) = opened(&responses).await;
        advance(Duration::from_millis(9_990)).await;
        assert_breaker_open(&upstream).await;
        assert_eq!(requests.load(Ordering::Relaxed), 20, "{code}");
        advance(Duration::from_millis(10)).await;
        assert_eq!(send(&upstream).await.unwrap().status, 200);
        assert_eq!(send(&upstream).await.unwrap().status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_opens_it_again() {
    let (_, upstream, requests) = opened(&[status(503)]).await;
    advance(Duration::from_secs(10)).await;
    assert_eq!(send(&upstream).await.unwrap().status, 503);
    assert_breaker_open(&upstream).await;
    assert_eq!(requests.load(Ordering::Relaxed), 21);
}

/// "Never open when there is nowhere else to go": a request without an alternative is sent, and if
/// it succeeds, the breaker closes.
#[tokio::test(start_paused = true)]
async fn a_request_without_an_alternative_is_sent_to_an_open_host() {
    let mut responses = twenty(&status(502));
    responses.extend([status(502), ok("again")]);
    let (_, upstream, requests) = opened(&responses).await;
    let only = Effort {
        has_alternative: false,
        ..ONCE
    };
    let far = Instant::now() + Duration::from_secs(600);
    let request = post("{}");
    let first = upstream.send_with_retry(&request, far, only).await;
    assert_eq!(first.unwrap().status, 502);
    assert_breaker_open(&upstream).await;
    let second = upstream.send_with_retry(&request, far, only).await;
    assert_eq!(second.unwrap().status, 200);
    assert_eq!(send(&upstream).await.unwrap().status, 200);
    assert_eq!(requests.load(Ordering::Relaxed), 23);
}

#[tokio::test(start_paused = true)]
async fn one_probe_at_a_time_and_a_dropped_one_lets_the_next_through() {
    let world = World::default();
    let upstream = world.upstream(options());
    for _ in 0..20 {
        send_once(&upstream, &post("{}")).await.unwrap_err();
    }
    world.stall("a.example");
    advance(Duration::from_secs(10)).await;
    let request = post("{}");
    for dials in 1..4 {
        let mut probe = Box::pin(send_once(&upstream, &request));
        assert!(
            probe
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert_breaker_open(&upstream).await;
        assert_eq!(world.dials(), dials);
        drop(probe);
    }
    serve_in_turn(&world, "a.example", &[ok("a")]);
    assert_eq!(send(&upstream).await.unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_probe_is_done_when_the_head_of_its_answer_is_there() {
    let mut responses = twenty(&status(502));
    responses.push("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na".to_owned());
    responses.push(ok("b"));
    let (_, upstream, _) = opened(&responses).await;
    advance(Duration::from_secs(10)).await;
    let probe = send(&upstream).await.unwrap();
    assert_eq!(
        send(&upstream)
            .await
            .unwrap()
            .body
            .collect(1)
            .await
            .unwrap(),
        "b"
    );
    drop(probe);
}

#[tokio::test]
async fn connections_that_end_before_a_head_are_failures() {
    let (_, upstream) = single_host(|_, mut peer| async move {
        peer.request().await;
    });
    for _ in 0..20 {
        send_once(&upstream, &post("{}")).await.unwrap_err();
    }
    assert_breaker_open(&upstream).await;
}

#[tokio::test]
async fn bodies_that_break_off_are_no_failures_of_the_host() {
    let (_, upstream) = single_host(|_, mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na")
            .await;
    });
    for _ in 0..30 {
        let body = send_once(&upstream, &post("{}")).await.unwrap().body;
        assert!(body.collect(9).await.is_err());
    }
}

/// "The breaker is not a weapon of one tenant": a request for which the server fails with 500, or
/// that it refuses or limits, does not shut it for others.
#[tokio::test]
async fn statuses_that_depend_on_the_request_are_no_failures() {
    for code in [400, 401, 404, 422, 429, 500, 529] {
        let (_, upstream, _) = in_turn(&[status(code)]);
        for _ in 0..30 {
            assert_eq!(send(&upstream).await.unwrap().status, code);
        }
    }
}

/// "The breaker is not a weapon of one tenant": a head that does not arrive in time may be the
/// request's own fault.
#[tokio::test(start_paused = true)]
async fn slow_heads_are_no_failures() {
    let (_, upstream) = single_host(|_, mut peer| async move { peer.closed().await });
    let slow = |_| {
        let upstream = upstream.clone();
        tokio::spawn(async move { send_once(&upstream, &for_stream()).await.map(drop) })
    };
    let all: Vec<_> = (0..30).map(slow).collect();
    for one in all {
        let failure = one.await.unwrap().unwrap_err();
        assert!(matches!(failure, EngineError::Unanswered(_)), "{failure}");
    }
    let next = send_once(&upstream, &for_stream()).await.unwrap_err();
    assert!(matches!(next, EngineError::Unanswered(_)), "{next}");
}

#[tokio::test(start_paused = true)]
async fn impatience_is_no_failure_of_the_host() {
    let (_, slow) = single_host(|_, mut peer| async move { peer.closed().await });
    let world = World::default();
    world.stall("a.example");
    for upstream in [slow, world.upstream(options())] {
        for millis in 0..30 {
            let near = Instant::now() + Duration::from_millis(millis);
            let failure = upstream
                .send_with_retry(&post("{}"), near, WITH_RETRY)
                .await
                .unwrap_err();
            let is_timeout = matches!(
                failure,
                EngineError::Timeout(_) | EngineError::Unanswered(_)
            );
            assert!(is_timeout, "{failure}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn more_successes_than_failures_keep_it_closed() {
    let mut responses = vec![ok("a"); 11];
    responses.extend(vec![status(502); 10]);
    responses.push(ok("a"));
    let (_, upstream, _) = in_turn(&responses);
    // The last request shows that the breaker is closed after the others.
    for _ in 0..22 {
        send_once(&upstream, &post("{}"))
            .await
            .unwrap()
            .body
            .collect(9)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_left_alone_costs_no_time() {
    let world = World::default();
    world.stall("a.example");
    let fallback = serve_in_turn(&world, "b.example", &[ok("from b")]);
    let upstream = world.upstream(with_fallback());
    let unreachable = |_| {
        let upstream = upstream.clone();
        tokio::spawn(async move { send_once(&upstream, &post("{}")).await.map(drop) })
    };
    let all: Vec<_> = (0..20).map(unreachable).collect();
    for one in all {
        one.await.unwrap().unwrap_err();
    }
    // The breaker of the first host is open.
    let started = Instant::now();
    assert_eq!(send_once(&upstream, &post("{}")).await.unwrap().status, 200);
    assert!(
        started.elapsed() < Duration::from_millis(10),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(fallback.load(Ordering::Relaxed), 1);
    // Requests go to the first host again once it has recovered.
    let main = serve_in_turn(&world, "a.example", &[ok("from a")]);
    advance(Duration::from_secs(10)).await;
    for _ in 0..2 {
        let body = send(&upstream).await.unwrap().body;
        assert_eq!(body.collect(100).await.unwrap(), "from a");
    }
    assert_eq!(main.load(Ordering::Relaxed), 2);
}
