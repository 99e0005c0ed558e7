//! Connections that are reused, and those that must not be.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use engine::EngineError;
use network::{Peer, World, ok, post, send, send_once, single_host, tcp};
use sluicegate_upstream::Upstream;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, mpsc};
use tokio::task::yield_now;
use tokio::time::{advance, sleep, timeout};

/// Sends `{}` and returns the body of the response.
async fn get(upstream: &Upstream) -> String {
    let body = send_once(upstream, &post("{}")).await.unwrap().body;
    String::from_utf8(body.collect(100).await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn a_connection_is_used_again_when_its_answer_was_read() {
    for response in [
        ok("a"),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n".to_owned(),
        "HTTP/1.1 503 X\r\nContent-Length: 1\r\n\r\na".to_owned(),
    ] {
        let (world, upstream) = single_host(move |_, peer| peer.always(response.clone()));
        for _ in 0..4 {
            assert_eq!(get(&upstream).await, "a");
        }
        assert_eq!(world.dials(), 1);
    }
}

#[tokio::test]
async fn a_connection_goes_back_with_the_last_piece_of_a_known_length() {
    let (world, upstream) = single_host(|_, peer| peer.always(ok("a")));
    for _ in 0..3 {
        let mut body = send_once(&upstream, &post("{}")).await.unwrap().body;
        // The end of the body is not polled.
        assert_eq!(body.chunk().await.unwrap().unwrap(), "a");
    }
    assert_eq!(world.dials(), 1);
}

#[tokio::test]
async fn a_connection_that_is_said_to_close_is_not_used_again() {
    for response in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        // Two framings: the next response by one is a part of the body by the other.
        "HTTP/1.1 200 OK\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    ] {
        let (world, upstream) = single_host(move |_, peer| peer.always(response));
        for dials in 1..4 {
            assert_eq!(get(&upstream).await, "a");
            assert_eq!(world.dials(), dials, "{response}");
        }
    }
}

#[tokio::test]
async fn a_dropped_body_closes_its_connection() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let (world, upstream) = single_host(move |_, mut peer| {
        let sender = sender.clone();
        async move {
            peer.request().await;
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na")
                .await;
            peer.closed().await;
            sender.send(()).unwrap();
        }
    });
    for dials in 1..3 {
        drop(send_once(&upstream, &post("{}")).await.unwrap());
        events.recv().await.unwrap();
        assert_eq!(world.dials(), dials);
    }
}

#[tokio::test]
async fn a_connection_that_closed_while_it_waited_is_noticed() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let (world, upstream) = single_host(move |_, mut peer| {
        let sender = sender.clone();
        async move {
            peer.request().await;
            peer.send(ok("a")).await;
            drop(peer);
            sender.send(()).unwrap();
        }
    });
    for dials in 1..4 {
        assert_eq!(get(&upstream).await, "a");
        events.recv().await.unwrap();
        assert_eq!(world.dials(), dials);
    }
}

#[tokio::test]
async fn a_closed_connection_does_not_hide_one_that_waits() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let are_waiting = Arc::new(Notify::new());
    let may_close = Arc::clone(&are_waiting);
    let (world, upstream) = single_host(move |number, mut peer| {
        let (sender, may_close) = (sender.clone(), Arc::clone(&may_close));
        async move {
            peer.request().await;
            peer.send(ok("a")).await;
            if number == 0 {
                return peer.always(ok("b")).await;
            }
            may_close.notified().await;
            drop(peer);
            sender.send(()).unwrap();
        }
    });
    let request = post("{}");
    let (first, last) = (
        send_once(&upstream, &request).await.unwrap(),
        send_once(&upstream, &request).await.unwrap(),
    );
    first.body.collect(9).await.unwrap();
    last.body.collect(9).await.unwrap();
    are_waiting.notify_one();
    events.recv().await.unwrap();
    assert_eq!(get(&upstream).await, "b");
    assert_eq!(world.dials(), 2);
}

/// Starts a server whose first connection responds once, reads the second request, then sends
/// `last` after a delay and closes.
fn stale(last: &'static str, after: Duration) -> (World, Upstream, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let (world, upstream) = single_host(move |number, mut peer| {
        let counted = Arc::clone(&counted);
        async move {
            while peer.request().await.is_some() {
                if counted.fetch_add(1, Ordering::Relaxed) > 0 && number == 0 {
                    sleep(after).await;
                    return peer.send(last).await;
                }
                peer.send(ok("a")).await;
            }
        }
    });
    (world, upstream, requests)
}

#[tokio::test]
async fn a_used_connection_that_closes_without_a_word_is_replaced() {
    let (world, upstream, requests) = stale("", Duration::ZERO);
    assert_eq!(get(&upstream).await, "a");
    assert_eq!(get(&upstream).await, "a");
    assert_eq!((world.dials(), requests.load(Ordering::Relaxed)), (2, 3));
}

/// A host that has had a request for some time may have worked on it.
#[tokio::test(start_paused = true)]
async fn a_used_connection_that_closes_late_is_a_failure() {
    for (after, requests) in [
        (Duration::from_millis(200), 3),
        (Duration::from_millis(300), 2),
    ] {
        let (_world, upstream, counted) = stale("", after);
        assert_eq!(get(&upstream).await, "a");
        let second = send_once(&upstream, &post("{}")).await;
        assert_eq!(
            (second.is_ok(), counted.load(Ordering::Relaxed)),
            (requests == 3, requests),
            "after {after:?}"
        );
    }
}

#[tokio::test]
async fn reused_connection_closed_after_a_byte_is_a_failure() {
    let (world, upstream, requests) = stale("H", Duration::ZERO);
    assert_eq!(get(&upstream).await, "a");
    let failure = send_once(&upstream, &post("{}")).await.unwrap_err();
    assert!(matches!(failure, EngineError::Upstream(_)), "{failure}");
    assert_eq!((world.dials(), requests.load(Ordering::Relaxed)), (1, 2));
}

#[tokio::test]
async fn a_new_connection_that_closes_without_a_word_is_a_failure() {
    let (world, upstream) = single_host(|_, mut peer| async move {
        peer.request().await;
    });
    assert!(send(&upstream).await.is_err());
    assert_eq!(world.dials(), 1);
}

#[tokio::test]
async fn a_length_that_is_wrong_spoils_no_other_answer() {
    // Too short: the rest would be read as the next response.
    let forged = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na{}",
        ok("forged")
    );
    let (world, upstream) = single_host(move |_, peer| peer.always(forged.clone()));
    for dials in 1..4 {
        assert_eq!(get(&upstream).await, "a");
        assert_eq!(world.dials(), dials);
    }
    // Too long: the body never ends.
    let (world, upstream) = single_host(|number, mut peer| async move {
        peer.request().await;
        let response = if number == 0 {
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na".to_owned()
        } else {
            ok("b")
        };
        peer.send(response).await;
    });
    let error = send_once(&upstream, &post("{}"))
        .await
        .unwrap()
        .body
        .collect(100)
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::Truncated(_)), "{error}");
    assert_eq!(get(&upstream).await, "b");
    assert_eq!(world.dials(), 2);
}

#[tokio::test]
async fn bytes_after_an_answer_do_not_begin_the_next() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let (world, upstream) = single_host(move |_, mut peer| {
        let sender = sender.clone();
        async move {
            peer.request().await;
            peer.send(ok("a")).await;
            sender.send(()).unwrap();
            // Only now, on an idle connection.
            yield_now().await;
            peer.send(ok("forged")).await;
            sender.send(()).unwrap();
            peer.closed().await;
        }
    });
    for dials in 1..3 {
        assert_eq!(get(&upstream).await, "a");
        events.recv().await.unwrap();
        events.recv().await.unwrap();
        assert_eq!(world.dials(), dials);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_waits_ninety_seconds() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let (world, upstream) = single_host(move |_, mut peer| {
        let sender = sender.clone();
        async move {
            for _ in 0..2 {
                peer.request().await;
                peer.send(ok("a")).await;
            }
            peer.closed().await;
            sender.send(()).unwrap();
        }
    });
    get(&upstream).await;
    sleep(Duration::from_secs(80)).await;
    get(&upstream).await;
    assert_eq!(world.dials(), 1);
    advance(Duration::from_secs(89)).await;
    assert!(events.try_recv().is_err());
    // It is closed without any further request.
    sleep(Duration::from_secs(3)).await;
    assert!(events.try_recv().is_ok());
}

#[tokio::test(start_paused = true)]
async fn idle_connection_closed_by_the_peer_is_dropped() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let (_, upstream) = single_host(move |_, mut peer| {
        let sender = sender.clone();
        async move {
            peer.request().await;
            peer.send(ok("a")).await;
            peer.io.shutdown().await.unwrap();
            peer.closed().await;
            sender.send(()).unwrap();
        }
    });
    get(&upstream).await;
    sleep(Duration::from_millis(1_500)).await;
    assert!(events.try_recv().is_ok());
}

/// Drains a chunked response, and then sends another request. Returns the number of connections.
/// `rest` is the part of the response that the server sends late; without it, nothing more comes.
async fn drained(rest: Option<String>) -> usize {
    let rest = Arc::new(rest);
    let (world, upstream) = single_host(move |_, mut peer| {
        let rest = Arc::clone(&rest);
        async move {
            while peer.request().await.is_some() {
                peer.send(format!("{CHUNKED}8\r\nterminal\r\n")).await;
                sleep(Duration::from_millis(10)).await;
                match &*rest {
                    Some(rest) => peer.send(rest).await,
                    None => return peer.closed().await,
                }
            }
        }
    });
    let next = || async {
        let mut body = send_once(&upstream, &post("{}")).await.unwrap().body;
        assert_eq!(body.chunk().await.unwrap().unwrap(), "terminal");
        body
    };
    next().await.drain();
    sleep(Duration::from_millis(60)).await;
    next().await;
    world.dials()
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_near_is_read() {
    assert_eq!(drained(Some("0\r\n\r\n".to_owned())).await, 1);
    assert_eq!(
        drained(Some(format!(
            "{}0\r\n\r\n",
            "400\r\n".to_owned() + &"x".repeat(1024) + "\r\n"
        )))
        .await,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_far_is_not_waited_for() {
    assert_eq!(drained(None).await, 2);
    assert_eq!(
        drained(Some(format!(
            "{}0\r\n\r\n",
            ("400\r\n".to_owned() + &"x".repeat(1024) + "\r\n").repeat(200)
        )))
        .await,
        2
    );
}

/// A body that is drained in the background is dropped after a short timeout.
#[tokio::test(start_paused = true)]
async fn an_end_that_does_not_come_closes_its_connection() {
    let (closed, mut closed_events) = mpsc::unbounded_channel();
    let (_world, upstream) = single_host(move |_, mut peer| {
        let closed = closed.clone();
        async move {
            peer.request().await.unwrap();
            peer.send(format!("{CHUNKED}8\r\nterminal\r\n")).await;
            peer.closed().await;
            closed.send(()).unwrap();
        }
    });
    let mut body = send_once(&upstream, &post("{}")).await.unwrap().body;
    assert_eq!(body.chunk().await.unwrap().unwrap(), "terminal");
    body.drain();
    timeout(Duration::from_millis(100), closed_events.recv())
        .await
        .unwrap()
        .unwrap();
}

/// The number of idle connections is limited.
#[tokio::test]
async fn so_many_connections_wait_and_no_more() {
    let (world, upstream) = single_host(|_, peer| peer.always(ok("a")));
    for dials in [MAX_IDLE + 1, MAX_IDLE + 2] {
        // All of them concurrently, so that none is reused.
        let mut bodies = Vec::new();
        for _ in 0..=MAX_IDLE {
            bodies.push(send_once(&upstream, &post("{}")).await.unwrap().body);
        }
        assert_eq!(world.dials(), dials);
        for body in bodies {
            body.collect(100).await.unwrap();
        }
    }
}

/// The most recently used connection is the least likely to have been closed meanwhile.
#[tokio::test]
async fn the_connection_that_was_used_last_is_used_first() {
    let (world, upstream) = single_host(|number, peer| peer.always(ok(&number.to_string())));
    let first = send_once(&upstream, &post("{}")).await.unwrap().body;
    let second = send_once(&upstream, &post("{}")).await.unwrap().body;
    second.collect(100).await.unwrap();
    first.collect(100).await.unwrap();
    assert_eq!(get(&upstream).await, "0");
    assert_eq!(get(&upstream).await, "0");
    assert_eq!(world.dials(), 2);
}

/// A server that responds to each request with the body of the request, in chunks with yields
/// between them.
async fn echo(_: usize, mut peer: Peer) {
    while let Some(received) = peer.request().await {
        let nonce = received.body;
        let response = if nonce.len() % 2 == 0 {
            ok(&nonce)
        } else {
            let (one, other) = nonce.split_at(nonce.len() / 2);
            format!(
                "{CHUNKED}{:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n",
                one.len(),
                other.len()
            )
        };
        for chunk in response.as_bytes().chunks(23) {
            peer.send(chunk).await;
            yield_now().await;
        }
    }
}

/// Cancels most requests after a random number of polls, and compares every response with its
/// request. Returns the number of requests that completed.
async fn cancel_at_random(upstream: Upstream, seed: u64, rounds: u64) -> u64 {
    let mut completed = 0;
    for round in 0..rounds {
        let random = (seed + round)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23)
            .wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let nonce = format!("{seed}-{round}-{}", "n".repeat(random as usize % 40 + 2));
        let request = async {
            let mut body = send_once(&upstream, &post(nonce.clone()))
                .await
                .unwrap()
                .body;
            let mut read = Vec::new();
            while let Some(chunk) = body.chunk().await.unwrap() {
                read.extend_from_slice(&chunk);
                assert!(
                    nonce.as_bytes().starts_with(&read),
                    "{} for {nonce}",
                    read.escape_ascii()
                );
                if random >> 60 == 0 {
                    return body.drain();
                }
            }
            assert_eq!(read, nonce.as_bytes());
        };
        let mut request = pin!(request);
        let mut polls = (random >> 32) % 40;
        let done = std::future::poll_fn(|cx| {
            polls = polls.saturating_sub(1);
            match request.as_mut().poll(cx) {
                Poll::Pending if polls == 0 => Poll::Ready(false),
                polled => polled.map(|()| true),
            }
        });
        completed += u64::from(done.await);
    }
    completed
}

/// No response reaches another request, whenever requests are dropped.
#[tokio::test]
async fn u22_c08_no_answer_reaches_another_request() {
    let (world, upstream) = single_host(echo);
    let mut tasks = Vec::new();
    for seed in 0..4 {
        tasks.push(tokio::spawn(cancel_at_random(
            upstream.clone(),
            seed << 32,
            CANCELS / 4,
        )));
    }
    let mut completed = 0;
    for task in tasks {
        completed += task.await.unwrap();
    }
    // Both happened often: cancelled requests, and reused connections.
    assert!(
        (CANCELS / 10..CANCELS - CANCELS / 10).contains(&completed),
        "{completed}"
    );
    assert!((world.dials() as u64) < CANCELS, "{}", world.dials());
}

/// No response reaches another request over TCP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u22_no_answer_reaches_another_request_over_tcp() {
    let upstream = tcp(false, echo).await;
    let one = tokio::spawn(cancel_at_random(upstream.clone(), 1 << 32, 1_000));
    let other = tokio::spawn(cancel_at_random(upstream, 2 << 32, 1_000));
    assert!(one.await.unwrap() + other.await.unwrap() > 100);
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
/// The number of requests, cancelled or not.
const CANCELS: u64 = 100_000;
/// The maximum number of idle connections.
const MAX_IDLE: usize = 256;
