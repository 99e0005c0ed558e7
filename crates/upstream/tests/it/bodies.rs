//! Bodies of answers: whole, late, broken off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use sluicegate_upstream::{Answer, IncomingBody, listen};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep};
use translate::outbound::Protocol;

use crate::world::{Peer, asking, ok, one, tcp};

/// The pieces of a body, and how it ended.
async fn read(mut body: IncomingBody) -> (Vec<Bytes>, Option<EngineError>) {
    let mut pieces = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => pieces.push(frame.into_data().unwrap()),
            Err(error) => return (pieces, Some(error)),
        }
    }
    (pieces, None)
}

/// The body that these bytes, and the end of the connection, make.
async fn answered(bytes: impl Into<Vec<u8>>) -> IncomingBody {
    let bytes = bytes.into();
    let serve = move |_, mut peer: Peer| {
        let bytes = bytes.clone();
        async move {
            peer.request().await;
            peer.say(bytes).await;
        }
    };
    one(serve).1.send(&asking("{}")).await.unwrap().body
}

#[tokio::test]
async fn bodies_of_all_framings_are_read() {
    for bytes in [
        ok("a body"),
        format!("{CHUNKED}2\r\na \r\n4;x=y\r\nbody\r\n0\r\nTrailer: x\r\n\r\n"),
        "HTTP/1.1 200 OK\r\n\r\na body".to_owned(),
        "HTTP/1.0 200 OK\r\n\r\na body".to_owned(),
    ] {
        let (pieces, error) = read(answered(bytes.clone()).await).await;
        assert!(error.is_none(), "{bytes}: {error:?}");
        assert_eq!(pieces.concat(), b"a body", "{bytes}");
        assert_eq!(answered(bytes.clone()).await.collect(6).await.unwrap(), "a body", "{bytes}");
        let too_large = answered(bytes.clone()).await.collect(5).await.unwrap_err();
        assert!(matches!(too_large, EngineError::Upstream(_)), "{bytes}: {too_large}");
    }
}

/// Of a body that is said to be too large nothing is waited for.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_announced_too_large_is_refused_before_it_is_read() {
    let begun = Instant::now();
    let body = answered("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\na").await;
    let refused = body.collect(5).await.unwrap_err();
    assert!(matches!(refused, EngineError::Upstream(_)) && begun.elapsed().is_zero(), "{refused}");
}

/// An error has its status without its body, which is not waited for long.
#[tokio::test(start_paused = true)]
async fn the_body_of_an_error_is_waited_for_a_moment() {
    let (_world, upstream) = one(|_, mut peer: Peer| async move {
        peer.request().await;
        peer.say("HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\n").await;
        peer.gone().await;
    });
    let begun = Instant::now();
    let told = Answer::read(upstream.send(&asking("{}")).await.unwrap(), &upstream, 100).await;
    assert!(matches!(told, Err(EngineError::Overloaded { .. })), "{told:?}");
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

#[tokio::test]
async fn blanks_before_an_answer_have_a_limit() {
    for (blanks, is_taken) in [(1000, true), (100_000, false)] {
        let (_world, upstream) = one(move |_, peer: Peer| peer.always(ok(&format!("{}{{}}", " ".repeat(blanks)))));
        let told = Answer::read(upstream.send(&asking("{}")).await.unwrap(), &upstream, 1 << 20).await;
        assert_eq!(told.is_ok(), is_taken, "{blanks}: {told:?}");
    }
}

/// A stream of which it is kept what it tells is not read for ever.
#[tokio::test]
async fn a_stream_that_is_kept_is_bounded() {
    const EVENT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"more\"}}]}\n\n";
    let said = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{}", EVENT.repeat(1000));
    let (_world, upstream) = one(move |_, peer: Peer| peer.always(said.clone()));
    let answer = Answer::read(upstream.send(&asking("{}")).await.unwrap(), &upstream, 1 << 20).await.unwrap();
    let mut heard = listen(answer.at_most(100 * EVENT.len()), Protocol::Chat, Duration::from_secs(9)).await.unwrap();
    let mut told = 0;
    let failure = loop {
        match heard.next().await.unwrap() {
            Ok(_) => told += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(failure, EngineError::Upstream(_)), "{failure}");
    // What came with the head is told, and then no more than a piece.
    assert!((1..500).contains(&told), "{told}");
}

/// What is no UTF-8 is not told with other characters in its place.
#[tokio::test]
async fn s11_an_event_that_is_no_utf8_is_a_failure() {
    let event = |text: &[u8]| {
        let (head, tail) = (&b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\""[..], b"\"}}]}\n\n");
        [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", head, text, tail].concat()
    };
    for (text, is_told) in [("\u{e9}".as_bytes(), true), (b"\xe9", false)] {
        let said = event(text);
        let (_world, upstream) = one(move |_, mut peer: Peer| {
            let said = said.clone();
            async move {
                peer.request().await;
                peer.say(said).await;
            }
        });
        let answer = Answer::read(upstream.send(&asking("{}")).await.unwrap(), &upstream, 1 << 20).await.unwrap();
        let heard = listen(answer, Protocol::Chat, Duration::from_secs(9)).await;
        assert_eq!(heard.is_ok(), is_told);
    }
}

#[tokio::test]
async fn a_large_body_comes_whole() {
    let large: String = (0..40_000).map(|at| format!("{at:x},")).collect();
    let whole = answered(ok(&large)).await.collect(large.len()).await.unwrap();
    assert!(whole == large);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_truncated_wherever_it_does() {
    for whole in [ok("a body"), format!("{CHUNKED}2\r\na \r\n4\r\nbody\r\n0\r\n\r\n")] {
        let head = whole.find("\r\n\r\n").unwrap() + 4;
        for end in head..whole.len() {
            let (pieces, error) = read(answered(&whole[..end]).await).await;
            assert!(matches!(error, Some(EngineError::Truncated(_))), "{:?}: {error:?}", &whole[..end]);
            assert!(b"a body".starts_with(&pieces.concat()), "{pieces:?}");
        }
    }
}

#[tokio::test]
async fn broken_framing_is_truncated() {
    for chunks in ["2\r\nabc\r\n0\r\n\r\n", "x\r\na\r\n", "fffffffffffffffff\r\na\r\n", "-1\r\na\r\n", "1\na\n0\n\n"] {
        let (_, error) = read(answered(format!("{CHUNKED}{chunks}")).await).await;
        assert!(matches!(error, Some(EngineError::Truncated(_))), "{chunks:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_reset_is_truncated() {
    let whole = format!("{CHUNKED}6\r\na body\r\n0\r\n\r\n");
    // Before the last chunk, and within the chunk of the body.
    for end in [whole.len() - 5, whole.len() - 8] {
        let part = whole[..end].to_owned();
        let is_read = Arc::new(Notify::new());
        let may_reset = Arc::clone(&is_read);
        let upstream = tcp(true, move |_, mut peer| {
            let (part, may_reset) = (part.clone(), Arc::clone(&may_reset));
            async move {
                peer.request().await;
                peer.say(part).await;
                may_reset.notified().await;
            }
        });
        let mut body = upstream.await.send(&asking("{}")).await.unwrap().body;
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(b"a body".starts_with(&piece), "{piece:?}");
        is_read.notify_one();
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(matches!(error, EngineError::Truncated(_)), "{error}");
        assert!(body.frame().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stall_between_two_pieces_is_late_and_closes_the_connection() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (_, upstream) = one(move |_, mut peer| {
        let tell = tell.clone();
        async move {
            peer.request().await;
            peer.say(CHUNKED).await;
            // The limit is for each piece, not for all of them.
            for _ in 0..3 {
                sleep(Duration::from_secs(119)).await;
                peer.say("1\r\na\r\n").await;
            }
            let begun = Instant::now();
            peer.gone().await;
            tell.send(begun.elapsed()).unwrap();
        }
    });
    let (pieces, error) = read(upstream.send(&asking("{}")).await.unwrap().body).await;
    assert!(matches!(error, Some(EngineError::Timeout(_))), "{error:?}");
    assert_eq!(pieces.concat(), b"aaa");
    let waited = told.recv().await.unwrap();
    assert!((Duration::from_millis(119_990)..Duration::from_millis(120_010)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_slow_reader_is_not_the_upstreams() {
    let (_, upstream) = one(move |_, mut peer| async move {
        peer.request().await;
        peer.say(CHUNKED).await;
        sleep(Duration::from_secs(1)).await;
        peer.say("1\r\na\r\n1\r\nb\r\n").await;
        sleep(Duration::from_secs(500)).await;
        peer.say("0\r\n\r\n").await;
    });
    let mut body = upstream.send(&asking("{}")).await.unwrap().body;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
    sleep(Duration::from_secs(400)).await;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "b");
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn little_is_read_ahead_of_a_slow_reader() {
    let said = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&said);
    let (_, upstream) = one(move |_, mut peer| {
        let counted = Arc::clone(&counted);
        async move {
            peer.request().await;
            peer.say(CHUNKED).await;
            let piece = format!("400\r\n{}\r\n", "x".repeat(1024));
            loop {
                peer.say(&piece).await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let mut body = upstream.send(&asking("{}")).await.unwrap().body;
    for _ in 0..3 {
        body.frame().await.unwrap().unwrap();
        // A paused clock goes on when nobody can do anything any more.
        sleep(Duration::from_secs(1)).await;
    }
    let ahead = said.load(Ordering::Relaxed);
    // The pipe of this world alone holds 16 KiB.
    assert!(ahead < 128, "{ahead} KiB");
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
