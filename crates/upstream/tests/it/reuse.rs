//! Connections that are used again, and those that must not be.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use engine::EngineError;
use http_body_util::BodyExt;
use sluicegate_upstream::{Stage, Upstream};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, mpsc};
use tokio::task::yield_now;
use tokio::time::{advance, sleep, timeout};

use crate::world::{Peer, World, asking, ok, one, tcp};

/// The body of the answer to `{}`.
async fn get(upstream: &Upstream) -> String {
    let body = upstream.send(&asking("{}")).await.unwrap().body;
    String::from_utf8(body.collect(100).await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn a_connection_is_used_again_when_its_answer_was_read() {
    for answer in [
        ok("a"),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n".to_owned(),
        "HTTP/1.1 503 X\r\nContent-Length: 1\r\n\r\na".to_owned(),
    ] {
        let (world, upstream) = one(move |_, peer| peer.always(answer.clone()));
        for _ in 0..4 {
            assert_eq!(get(&upstream).await, "a");
        }
        assert_eq!(world.dials(), 1);
    }
}

#[tokio::test]
async fn a_connection_goes_back_with_the_last_piece_of_a_known_length() {
    let (world, upstream) = one(|_, peer| peer.always(ok("a")));
    for _ in 0..3 {
        let mut body = upstream.send(&asking("{}")).await.unwrap().body;
        // Nobody asks whether there is more.
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
    }
    assert_eq!(world.dials(), 1);
}

#[tokio::test]
async fn a_connection_that_is_said_to_close_is_not_used_again() {
    for answer in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        // Two framings: what one calls the next answer is the body of the other.
        "HTTP/1.1 200 OK\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    ] {
        let (world, upstream) = one(move |_, peer| peer.always(answer));
        for dials in 1..4 {
            assert_eq!(get(&upstream).await, "a");
            assert_eq!(world.dials(), dials, "{answer}");
        }
    }
}

#[tokio::test]
async fn a_dropped_body_closes_its_connection() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (world, upstream) = one(move |_, mut peer| {
        let tell = tell.clone();
        async move {
            peer.request().await;
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na").await;
            peer.gone().await;
            tell.send(()).unwrap();
        }
    });
    for dials in 1..3 {
        drop(upstream.send(&asking("{}")).await.unwrap());
        told.recv().await.unwrap();
        assert_eq!(world.dials(), dials);
    }
}

#[tokio::test]
async fn a_connection_that_closed_while_it_waited_is_noticed() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (world, upstream) = one(move |_, mut peer| {
        let tell = tell.clone();
        async move {
            peer.request().await;
            peer.say(ok("a")).await;
            drop(peer);
            tell.send(()).unwrap();
        }
    });
    for dials in 1..4 {
        assert_eq!(get(&upstream).await, "a");
        told.recv().await.unwrap();
        assert_eq!(world.dials(), dials);
    }
}

#[tokio::test]
async fn a_closed_connection_does_not_hide_one_that_waits() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let are_waiting = Arc::new(Notify::new());
    let may_close = Arc::clone(&are_waiting);
    let (world, upstream) = one(move |number, mut peer| {
        let (tell, may_close) = (tell.clone(), Arc::clone(&may_close));
        async move {
            peer.request().await;
            peer.say(ok("a")).await;
            if number == 0 {
                return peer.always(ok("b")).await;
            }
            may_close.notified().await;
            drop(peer);
            tell.send(()).unwrap();
        }
    });
    let request = asking("{}");
    let (first, last) = (upstream.send(&request).await.unwrap(), upstream.send(&request).await.unwrap());
    first.body.collect(9).await.unwrap();
    last.body.collect(9).await.unwrap();
    are_waiting.notify_one();
    told.recv().await.unwrap();
    assert_eq!(get(&upstream).await, "b");
    assert_eq!(world.dials(), 2);
}

/// A server whose first connection answers once and reads the second request, then says `last` after a while and closes.
fn stale(last: &'static str, after: Duration) -> (World, Upstream, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let (world, upstream) = one(move |number, mut peer| {
        let counted = Arc::clone(&counted);
        async move {
            while peer.request().await.is_some() {
                if counted.fetch_add(1, Ordering::Relaxed) > 0 && number == 0 {
                    sleep(after).await;
                    return peer.say(last).await;
                }
                peer.say(ok("a")).await;
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

/// A host that has had a request for longer may have done something about it.
#[tokio::test(start_paused = true)]
async fn a_used_connection_that_closes_late_is_a_failure() {
    for (after, requests) in [(Duration::from_millis(900), 3), (Duration::from_millis(1100), 2)] {
        let (_world, upstream, asked) = stale("", after);
        assert_eq!(get(&upstream).await, "a");
        let second = upstream.send(&asking("{}")).await;
        assert_eq!((second.is_ok(), asked.load(Ordering::Relaxed)), (requests == 3, requests), "after {after:?}");
    }
}

#[tokio::test]
async fn a_used_connection_that_closes_after_a_single_byte_is_a_failure() {
    let (world, upstream, requests) = stale("H", Duration::ZERO);
    assert_eq!(get(&upstream).await, "a");
    let failure = upstream.send(&asking("{}")).await.unwrap_err();
    assert!(matches!(failure.error, EngineError::Upstream(_)), "{failure}");
    assert_eq!((failure.stage, failure.may_fail_over), (Stage::Head, false));
    assert_eq!((world.dials(), requests.load(Ordering::Relaxed)), (1, 2));
}

#[tokio::test]
async fn a_new_connection_that_closes_without_a_word_is_a_failure() {
    let (world, upstream) = one(|_, mut peer| async move {
        peer.request().await;
    });
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    let failure = upstream.ask(&asking("{}"), deadline, true).await.unwrap_err();
    assert_eq!((failure.stage, failure.may_fail_over), (Stage::Head, false));
    assert_eq!(world.dials(), 1);
}

#[tokio::test]
async fn a_length_that_is_wrong_spoils_no_other_answer() {
    // Too short: the rest would be read as the next answer.
    let forged = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na{}", ok("forged"));
    let (world, upstream) = one(move |_, peer| peer.always(forged.clone()));
    for dials in 1..4 {
        assert_eq!(get(&upstream).await, "a");
        assert_eq!(world.dials(), dials);
    }
    // Too long: there is no end.
    let (world, upstream) = one(|number, mut peer| async move {
        peer.request().await;
        let whole = if number == 0 { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na".to_owned() } else { ok("b") };
        peer.say(whole).await;
    });
    let error = upstream.send(&asking("{}")).await.unwrap().body.collect(100).await.unwrap_err();
    assert!(matches!(error, EngineError::Truncated(_)), "{error}");
    assert_eq!(get(&upstream).await, "b");
    assert_eq!(world.dials(), 2);
}

#[tokio::test]
async fn bytes_after_an_answer_do_not_begin_the_next() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (world, upstream) = one(move |_, mut peer| {
        let tell = tell.clone();
        async move {
            peer.request().await;
            peer.say(ok("a")).await;
            tell.send(()).unwrap();
            // Only now, on a connection that waits.
            yield_now().await;
            peer.say(ok("forged")).await;
            tell.send(()).unwrap();
            peer.gone().await;
        }
    });
    for dials in 1..3 {
        assert_eq!(get(&upstream).await, "a");
        told.recv().await.unwrap();
        told.recv().await.unwrap();
        assert_eq!(world.dials(), dials);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_waits_ninety_seconds() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (world, upstream) = one(move |_, mut peer| {
        let tell = tell.clone();
        async move {
            for _ in 0..2 {
                peer.request().await;
                peer.say(ok("a")).await;
            }
            peer.gone().await;
            tell.send(()).unwrap();
        }
    });
    get(&upstream).await;
    sleep(Duration::from_secs(80)).await;
    get(&upstream).await;
    assert_eq!(world.dials(), 1);
    advance(Duration::from_secs(89)).await;
    assert!(told.try_recv().is_err());
    // Nobody asks, and it is closed all the same.
    sleep(Duration::from_secs(3)).await;
    assert!(told.try_recv().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_closes_while_nobody_asks_is_let_go() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (_, upstream) = one(move |_, mut peer| {
        let tell = tell.clone();
        async move {
            peer.request().await;
            peer.say(ok("a")).await;
            peer.io.shutdown().await.unwrap();
            peer.gone().await;
            tell.send(()).unwrap();
        }
    });
    get(&upstream).await;
    sleep(Duration::from_millis(1_500)).await;
    assert!(told.try_recv().is_ok());
}

/// A server that sends `rest` of a chunked answer on its word, or nothing more. How many connections there were when
/// the answer was drained, and then a next one was asked for.
async fn drained(rest: Option<String>) -> usize {
    let rest = Arc::new(rest);
    let (world, upstream) = one(move |_, mut peer| {
        let rest = Arc::clone(&rest);
        async move {
            while peer.request().await.is_some() {
                peer.say(format!("{CHUNKED}8\r\nterminal\r\n")).await;
                sleep(Duration::from_millis(10)).await;
                match &*rest {
                    Some(rest) => peer.say(rest).await,
                    None => return peer.gone().await,
                }
            }
        }
    });
    let next = || async {
        let mut body = upstream.send(&asking("{}")).await.unwrap().body;
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "terminal");
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
    assert_eq!(drained(Some(format!("{}0\r\n\r\n", "400\r\n".to_owned() + &"x".repeat(1024) + "\r\n"))).await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_far_is_not_waited_for() {
    assert_eq!(drained(None).await, 2);
    assert_eq!(
        drained(Some(format!("{}0\r\n\r\n", ("400\r\n".to_owned() + &"x".repeat(1024) + "\r\n").repeat(65)))).await,
        2
    );
}

/// What is drained in the background is let go soon.
#[tokio::test(start_paused = true)]
async fn an_end_that_does_not_come_closes_its_connection() {
    let (closed, mut closings) = mpsc::unbounded_channel();
    let (_world, upstream) = one(move |_, mut peer| {
        let closed = closed.clone();
        async move {
            peer.request().await.unwrap();
            peer.say(format!("{CHUNKED}8\r\nterminal\r\n")).await;
            peer.gone().await;
            closed.send(()).unwrap();
        }
    });
    let mut body = upstream.send(&asking("{}")).await.unwrap().body;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "terminal");
    body.drain();
    timeout(Duration::from_millis(100), closings.recv()).await.unwrap().unwrap();
}

/// More connections than are worth keeping do not all wait for a next request.
#[tokio::test]
async fn so_many_connections_wait_and_no_more() {
    let (world, upstream) = one(|_, peer| peer.always(ok("a")));
    for dials in [MAX_IDLE + 1, MAX_IDLE + 2] {
        // All of them at once, so that none serves two.
        let mut bodies = Vec::new();
        for _ in 0..=MAX_IDLE {
            bodies.push(upstream.send(&asking("{}")).await.unwrap().body);
        }
        assert_eq!(world.dials(), dials);
        for body in bodies {
            body.collect(100).await.unwrap();
        }
    }
}

/// The connection that was used last is the least likely to have been closed meanwhile.
#[tokio::test]
async fn the_connection_that_was_used_last_is_used_first() {
    let (world, upstream) = one(|number, peer| peer.always(ok(&number.to_string())));
    let first = upstream.send(&asking("{}")).await.unwrap().body;
    let second = upstream.send(&asking("{}")).await.unwrap().body;
    second.collect(100).await.unwrap();
    first.collect(100).await.unwrap();
    assert_eq!(get(&upstream).await, "0");
    assert_eq!(get(&upstream).await, "0");
    assert_eq!(world.dials(), 2);
}

/// A server that answers each request with its own body, in pieces with pauses between them.
async fn echo(_: usize, mut peer: Peer) {
    while let Some(asked) = peer.request().await {
        let nonce = asked.body;
        let whole = if nonce.len() % 2 == 0 {
            ok(&nonce)
        } else {
            let (one, other) = nonce.split_at(nonce.len() / 2);
            format!("{CHUNKED}{:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n", one.len(), other.len())
        };
        for piece in whole.as_bytes().chunks(23) {
            peer.say(piece).await;
            yield_now().await;
        }
    }
}

/// Cancels most requests, each after so many polls, and holds every answer against its request.
async fn cancel_at_random(upstream: Upstream, seed: u64, rounds: u64) -> u64 {
    let mut answered = 0;
    for round in 0..rounds {
        let random =
            (seed + round).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let nonce = format!("{seed}-{round}-{}", "n".repeat(random as usize % 40 + 2));
        let request = async {
            let mut body = upstream.send(&asking(nonce.clone())).await.unwrap().body;
            let mut read = Vec::new();
            while let Some(frame) = body.frame().await {
                read.extend_from_slice(&frame.unwrap().into_data().unwrap());
                assert!(nonce.as_bytes().starts_with(&read), "{} for {nonce}", read.escape_ascii());
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
        answered += u64::from(done.await);
    }
    answered
}

/// Requests that are dropped at any moment leave nothing behind: no answer reaches another request.
#[tokio::test]
async fn u22_c08_no_answer_reaches_another_request() {
    let (world, upstream) = one(echo);
    let mut tasks = Vec::new();
    for seed in 0..4 {
        tasks.push(tokio::spawn(cancel_at_random(upstream.clone(), seed << 32, CANCELS / 4)));
    }
    let mut answered = 0;
    for task in tasks {
        answered += task.await.unwrap();
    }
    // Both happened, often: requests that were cancelled, and connections that were used again.
    assert!((CANCELS / 10..CANCELS - CANCELS / 10).contains(&answered), "{answered}");
    assert!((world.dials() as u64) < CANCELS, "{}", world.dials());
}

/// The same over sockets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u22_no_answer_reaches_another_request_over_tcp() {
    let upstream = tcp(false, echo).await;
    let one = tokio::spawn(cancel_at_random(upstream.clone(), 1 << 32, 1_000));
    let other = tokio::spawn(cancel_at_random(upstream, 2 << 32, 1_000));
    assert!(one.await.unwrap() + other.await.unwrap() > 100);
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
/// Requests that are dropped at some moment, or not.
const CANCELS: u64 = 100_000;
/// The most connections that wait.
const MAX_IDLE: usize = 256;
