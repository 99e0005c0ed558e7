//! Response bodies: complete, stalled, truncated.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::{EngineError, TextEvent};
use futures_util::StreamExt;
use sluicegate_upstream::relay::Relay;
use sluicegate_upstream::{Answer, IncomingBody, Reported, read_stream};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep};
use translate::outbound::Protocol;
use translate::relay::Chat;

use crate::world::{Peer, ok, post, send_once, single_host, tcp};

/// Reads a body. Returns its chunks, and its error, if any.
async fn read(mut body: IncomingBody) -> (Vec<Bytes>, Option<EngineError>) {
    let mut chunks = Vec::new();
    loop {
        match body.chunk().await {
            Ok(Some(chunk)) => chunks.push(chunk),
            Ok(None) => return (chunks, None),
            Err(error) => return (chunks, Some(error)),
        }
    }
}

/// Returns the body of a response that consists of these bytes, after which the connection closes.
async fn body_of(bytes: impl Into<Vec<u8>>) -> IncomingBody {
    let bytes = bytes.into();
    let serve = move |_, mut peer: Peer| {
        let bytes = bytes.clone();
        async move {
            peer.request().await;
            peer.send(bytes).await;
        }
    };
    send_once(&single_host(serve).1, &post("{}"))
        .await
        .unwrap()
        .body
}

#[tokio::test]
async fn bodies_of_all_framings_are_read() {
    for bytes in [
        ok("a body"),
        format!("{CHUNKED}2\r\na \r\n4;x=y\r\nbody\r\n0\r\nTrailer: x\r\n\r\n"),
        "HTTP/1.1 200 OK\r\n\r\na body".to_owned(),
        "HTTP/1.0 200 OK\r\n\r\na body".to_owned(),
    ] {
        let (chunks, error) = read(body_of(bytes.clone()).await).await;
        assert!(error.is_none(), "{bytes}: {error:?}");
        assert_eq!(chunks.concat(), b"a body", "{bytes}");
        assert_eq!(
            body_of(bytes.clone()).await.collect(6).await.unwrap(),
            "a body",
            "{bytes}"
        );
        let too_large = body_of(bytes.clone()).await.collect(5).await.unwrap_err();
        assert!(
            matches!(too_large, EngineError::Upstream(_)),
            "{bytes}: {too_large}"
        );
    }
}

/// A body whose declared length is too large fails without waiting for it.
#[tokio::test(start_paused = true)]
async fn oversized_content_length_is_rejected_without_reading() {
    let started = Instant::now();
    let body = body_of("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\na").await;
    let error = body.collect(5).await.unwrap_err();
    assert!(
        matches!(error, EngineError::Upstream(_)) && started.elapsed().is_zero(),
        "{error}"
    );
}

/// An error is reported by its status; its body has a short timeout.
#[tokio::test(start_paused = true)]
async fn the_body_of_an_error_is_waited_for_a_moment() {
    let (_world, upstream) = single_host(|_, mut peer: Peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\n")
            .await;
        peer.closed().await;
    });
    let started = Instant::now();
    let answer = Answer::read(send_once(&upstream, &post("{}")).await.unwrap(), 100).await;
    assert!(
        matches!(answer, Err(EngineError::Overloaded { .. })),
        "{answer:?}"
    );
    assert_eq!(started.elapsed(), Duration::from_secs(2));
}

/// Servers send white space while a model works, for minutes.
#[tokio::test]
async fn white_space_before_an_answer_does_not_count() {
    for (blanks, reply) in [
        (" ".repeat(1000), "{}"),
        ("         \n".repeat(20_000), "{}"),
        ("\r\n".repeat(100_000), "\u{feff} {}"),
    ] {
        let body = format!("{blanks}{reply}");
        for response in [ok(&body), format!("HTTP/1.1 200 OK\r\n\r\n{body}")] {
            let (_world, upstream) =
                single_host(move |_, peer: Peer| peer.send_all(response.clone()));
            // The size limit applies to the document, not to the white space before it.
            let answer = Answer::read(send_once(&upstream, &post("{}")).await.unwrap(), 2).await;
            let Ok(Answer::Json(document)) = answer else {
                panic!("{answer:?}");
            };
            assert_eq!(document, "{}");
        }
    }
    let (_world, upstream) = single_host(|_, peer: Peer| peer.send_all(ok("  \n")));
    let answer = Answer::read(send_once(&upstream, &post("{}")).await.unwrap(), 9).await;
    assert!(
        matches!(answer, Err(EngineError::Upstream(_))),
        "{answer:?}"
    );
}

/// The bytes of a response decide that it is a stream, and not its content type.
#[tokio::test]
async fn a_stream_is_known_by_its_first_bytes() {
    const EVENT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"more\"}}]}\n\n";
    for kind in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/octet-stream\r\n",
        "Content-Type: application/json\r\n",
        "Content-Type: text/event-stream\r\n",
    ] {
        for opening in [
            "",
            ": ping\n\n",
            "event: chunk\n",
            "id: 1\n",
            "retry: 5\n\n",
            "\u{feff}",
            " \n\n",
            "\n\u{feff}: ping\n\n",
        ] {
            for size in [1, 1000] {
                let body = format!("{opening}{EVENT}");
                let chunks = body.as_bytes().chunks(size).map(|chunk| {
                    let head = format!("{:x}\r\n", chunk.len());
                    [head.as_bytes(), chunk, b"\r\n"].concat()
                });
                let head = format!("HTTP/1.1 200 OK\r\n{kind}Transfer-Encoding: chunked\r\n\r\n");
                let pieces: Vec<_> = [head.into_bytes()].into_iter().chain(chunks).collect();
                let (_world, upstream) = single_host(move |_, mut peer: Peer| {
                    let pieces = pieces.clone();
                    async move {
                        peer.request().await;
                        for piece in pieces {
                            peer.send(piece).await;
                        }
                        peer.closed().await;
                    }
                });
                let incoming = send_once(&upstream, &post("{}")).await.unwrap();
                let answer = Answer::read(incoming, 100).await.unwrap();
                let mut events = read_stream(answer, Protocol::Chat, Arc::default())
                    .await
                    .unwrap();
                let first = events.next().await.unwrap().unwrap();
                let text = TextEvent::Text("more".to_owned());
                assert_eq!(first, text, "{kind:?} {opening:?}");
            }
        }
    }
}

/// A body that begins neither like an event stream nor like an object is refused, unless it is
/// declared as an event stream.
#[tokio::test]
async fn other_bytes_are_no_answer() {
    for body in [
        "<html></html>",
        "data",
        "[{}]",
        "Hello.",
        "database: down",
        "",
    ] {
        let response = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{body}");
        let (_world, upstream) = single_host(move |_, peer: Peer| peer.send_all(response.clone()));
        let answer = Answer::read(send_once(&upstream, &post("{}")).await.unwrap(), 100).await;
        assert!(matches!(answer, Err(EngineError::Upstream(_))), "{body}");
    }
}

/// A stream that is buffered has a size limit.
#[tokio::test]
async fn a_stream_that_is_kept_is_bounded() {
    const EVENT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"more\"}}]}\n\n";
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{}",
        EVENT.repeat(1000)
    );
    let (_world, upstream) = single_host(move |_, peer: Peer| peer.always(response.clone()));
    let answer = Answer::read(send_once(&upstream, &post("{}")).await.unwrap(), 1 << 20)
        .await
        .unwrap();
    let answer = answer.at_most(100 * EVENT.len());
    let mut events = read_stream(answer, Protocol::Chat, Arc::default())
        .await
        .unwrap();
    let mut count = 0;
    let failure = loop {
        match events.next().await.unwrap() {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(failure, EngineError::Upstream(_)), "{failure}");
    // The events that were received with the head are returned, and at most one more chunk.
    assert!((1..500).contains(&count), "{count}");
}

/// Invalid UTF-8 in an event is an error, and not replaced by other characters.
#[tokio::test]
async fn s11_an_event_that_is_no_utf8_is_a_failure() {
    let event = |text: &[u8]| {
        let (head, tail) = (
            &b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\""[..],
            b"\"}}]}\n\n",
        );
        [
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
            head,
            text,
            tail,
        ]
        .concat()
    };
    for (text, is_valid) in [("\u{e9}".as_bytes(), true), (b"\xe9", false)] {
        let response = event(text);
        let (_world, upstream) = single_host(move |_, mut peer: Peer| {
            let response = response.clone();
            async move {
                peer.request().await;
                peer.send(response).await;
            }
        });
        let answer = Answer::read(send_once(&upstream, &post("{}")).await.unwrap(), 1 << 20)
            .await
            .unwrap();
        let events = read_stream(answer, Protocol::Chat, Arc::default()).await;
        assert_eq!(events.is_ok(), is_valid);
    }
}

#[tokio::test]
async fn a_large_body_comes_whole() {
    let large: String = (0..40_000).map(|at| format!("{at:x},")).collect();
    let collected = body_of(ok(&large))
        .await
        .collect(large.len())
        .await
        .unwrap();
    assert!(collected == large);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_truncated_wherever_it_does() {
    for response in [
        ok("a body"),
        format!("{CHUNKED}2\r\na \r\n4\r\nbody\r\n0\r\n\r\n"),
    ] {
        let head = response.find("\r\n\r\n").unwrap() + 4;
        for end in head..response.len() {
            let (chunks, error) = read(body_of(&response[..end]).await).await;
            assert!(
                matches!(error, Some(EngineError::Truncated(_))),
                "{:?}: {error:?}",
                &response[..end]
            );
            assert!(b"a body".starts_with(&chunks.concat()), "{chunks:?}");
        }
    }
}

#[tokio::test]
async fn broken_framing_is_truncated() {
    for chunks in [
        "2\r\nabc\r\n0\r\n\r\n",
        "x\r\na\r\n",
        "fffffffffffffffff\r\na\r\n",
        "-1\r\na\r\n",
        "1\na\n0\n\n",
    ] {
        let (_, error) = read(body_of(format!("{CHUNKED}{chunks}")).await).await;
        assert!(
            matches!(error, Some(EngineError::Truncated(_))),
            "{chunks:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_reset_is_truncated() {
    let response = format!("{CHUNKED}6\r\na body\r\n0\r\n\r\n");
    // Before the last chunk, and within the chunk of data.
    for end in [response.len() - 5, response.len() - 8] {
        let part = response[..end].to_owned();
        let is_read = Arc::new(Notify::new());
        let may_reset = Arc::clone(&is_read);
        let upstream = tcp(true, move |_, mut peer| {
            let (part, may_reset) = (part.clone(), Arc::clone(&may_reset));
            async move {
                peer.request().await;
                peer.send(part).await;
                may_reset.notified().await;
            }
        });
        let mut body = send_once(&upstream.await, &post("{}")).await.unwrap().body;
        let chunk = body.chunk().await.unwrap().unwrap();
        assert!(b"a body".starts_with(&chunk), "{chunk:?}");
        is_read.notify_one();
        let error = body.chunk().await.unwrap_err();
        assert!(matches!(error, EngineError::Truncated(_)), "{error}");
        assert!(body.chunk().await.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stall_between_two_pieces_is_late_and_closes_the_connection() {
    let (sender, mut durations) = mpsc::unbounded_channel();
    let (_, upstream) = single_host(move |_, mut peer| {
        let sender = sender.clone();
        async move {
            peer.request().await;
            peer.send(CHUNKED).await;
            // The timeout applies to each chunk, not to the complete body.
            for _ in 0..3 {
                sleep(Duration::from_secs(299)).await;
                peer.send("1\r\na\r\n").await;
            }
            let started = Instant::now();
            peer.closed().await;
            sender.send(started.elapsed()).unwrap();
        }
    });
    let (chunks, error) = read(send_once(&upstream, &post("{}")).await.unwrap().body).await;
    assert!(
        matches!(error, Some(EngineError::Unanswered(_))),
        "{error:?}"
    );
    assert_eq!(chunks.concat(), b"aaa");
    let waited = durations.recv().await.unwrap();
    assert!(
        (Duration::from_millis(299_990)..Duration::from_millis(300_010)).contains(&waited),
        "{waited:?}"
    );
}

/// Sends these pieces of a stream, each after 200 seconds, and reads it translated and relayed.
/// Returns how long each of them took, and true if it was complete.
async fn read_with_pauses(pieces: &'static [&'static str]) -> [(Duration, bool); 2] {
    let (_world, upstream) = single_host(move |_, mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            .await;
        for piece in pieces {
            sleep(Duration::from_secs(200)).await;
            peer.send(piece).await;
        }
        peer.closed().await;
    });
    let answer = async || {
        let incoming = send_once(&upstream, &post("{}")).await.unwrap();
        Answer::read(incoming, 1 << 20).await
    };
    let started = Instant::now();
    let translated = translate_all(answer().await).await.is_ok();
    let translated = (started.elapsed(), translated);
    let started = Instant::now();
    let relayed = relay_all(answer().await).await.is_ok();
    [translated, (started.elapsed(), relayed)]
}

async fn translate_all(answer: Result<Answer, EngineError>) -> Result<(), EngineError> {
    let mut events = read_stream(answer?, Protocol::Chat, Arc::default()).await?;
    while let Some(event) = events.next().await {
        event?;
    }
    Ok(())
}

async fn relay_all(answer: Result<Answer, EngineError>) -> Result<(), EngineError> {
    let Answer::Events(first, body) = answer? else {
        panic!("it is a stream");
    };
    let reported = Reported::default();
    let mut relay = Relay::begin(first, body, Chat::default(), "m", &reported, || ()).await?;
    let mut out = Vec::new();
    let mut end = relay.end;
    while end.is_none() {
        end = poll_fn(|cx| relay.poll_feed(cx, &mut out)).await?;
    }
    Ok(())
}

/// Sends these pieces of a stream and closes the connection, and relays it up to its first content.
/// Returns true if that was there, and true if an event was read before it.
async fn begin(pieces: &'static [&'static str]) -> (bool, bool) {
    let (_world, upstream) = single_host(move |_, mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            .await;
        for piece in pieces {
            sleep(Duration::from_secs(1)).await;
            peer.send(piece).await;
        }
    });
    let incoming = send_once(&upstream, &post("{}")).await.unwrap();
    let Ok(Answer::Events(first, body)) = Answer::read(incoming, 1 << 20).await else {
        panic!("it is a stream");
    };
    let mut has_opened = false;
    let (chat, reported) = (Chat::default(), Reported::default());
    let begun = Relay::begin(first, body, chat, "m", &reported, || has_opened = true).await;
    let has_begun = begun.is_ok();
    drop(begun);
    (has_begun, has_opened)
}

#[tokio::test(start_paused = true)]
async fn a_relay_begins_with_the_first_content() {
    const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    const TEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi.\"}}]}\n\n";
    const ERROR: &str = "data: {\"error\":{\"message\":\"No.\",\"code\":429}}\n\n";
    assert_eq!(begin(&[ROLE, TEXT, ERROR]).await, (true, true));
    assert_eq!(begin(&[TEXT, ERROR]).await, (true, false));
    assert_eq!(begin(&[ROLE, ERROR]).await, (false, true));
    assert_eq!(begin(&[ROLE]).await, (false, true));
    assert_eq!(begin(&[ERROR]).await, (false, false));
}

/// Comments, events of unknown kinds and events without
/// content keep a stream alive on both roads, however long its server thinks.
#[tokio::test(start_paused = true)]
async fn u07_any_event_and_any_comment_is_a_sign_of_life() {
    let roads = read_with_pauses(&[
        ": PROCESSING\n\n",
        ": PROCESSING\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n",
        "event: ping\ndata: {\"choices\":[]}\n\n",
        ": PROCESSING\n\n",
        "data: \n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi.\"}}]}\n\n",
        ": PROCESSING\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    ])
    .await;
    assert_eq!(roads, [(Duration::from_secs(2000), true); 2]);
}

/// A part of an event is no sign of life: a server that sends some bytes now and then, and never
/// completes an event, has timed out.
#[tokio::test(start_paused = true)]
async fn u07_a_part_of_an_event_is_no_sign_of_life() {
    let roads = read_with_pauses(&[
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi.\"}}]}\n\n",
        "data: {\"cho",
        "ices\":[{\"index\":0,\"delta\":{\"con",
        "tent\":\"Hi.\"}}]}\n\n",
    ])
    .await;
    for (took, is_whole) in roads {
        assert!(!is_whole);
        // The first event, and then the idle timeout.
        let owed = Duration::from_secs(500)..Duration::from_secs(501);
        assert!(owed.contains(&took), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_slow_reader_is_not_the_upstreams() {
    let (_, upstream) = single_host(move |_, mut peer| async move {
        peer.request().await;
        peer.send(CHUNKED).await;
        sleep(Duration::from_secs(1)).await;
        peer.send("1\r\na\r\n").await;
        sleep(Duration::from_secs(1)).await;
        peer.send("1\r\nb\r\n").await;
        sleep(Duration::from_secs(500)).await;
        peer.send("0\r\n\r\n").await;
    });
    let mut body = send_once(&upstream, &post("{}")).await.unwrap().body;
    assert_eq!(body.chunk().await.unwrap().unwrap(), "a");
    sleep(Duration::from_secs(400)).await;
    assert_eq!(body.chunk().await.unwrap().unwrap(), "b");
    assert!(body.chunk().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn little_is_read_ahead_of_a_slow_reader() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let (_, upstream) = single_host(move |_, mut peer| {
        let counted = Arc::clone(&counted);
        async move {
            peer.request().await;
            peer.send(CHUNKED).await;
            let chunk = format!("400\r\n{}\r\n", "x".repeat(1024));
            loop {
                peer.send(&chunk).await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let mut body = send_once(&upstream, &post("{}")).await.unwrap().body;
    for _ in 0..3 {
        body.chunk().await.unwrap().unwrap();
        // A paused clock advances when all tasks are idle.
        sleep(Duration::from_secs(1)).await;
    }
    let ahead = sent.load(Ordering::Relaxed);
    // The in-memory pipe alone holds 16 KiB.
    assert!(ahead < 128, "{ahead} KiB");
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
