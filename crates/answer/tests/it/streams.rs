//! Answers as JSON and as events, translated and relayed.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use engine::{EngineError, TextEvent};
use futures_util::StreamExt;
use network::{Peer, ok, post, send_once, single_host};
use relay::Chat;
use sluicegate_answer::{Answer, Asked, Relay, read_stream};
use tokio::time::{Instant, sleep};
use vendor::Protocol;

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
    let asked = Asked::default();
    let mut relay = Relay::begin(first, body, Chat::default(), "m", &asked).await?;
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
    let asked = Asked::default();
    let begun = Relay::begin(first, body, Chat::default(), "m", &asked).await;
    (begun.is_ok(), asked.has_opened())
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
