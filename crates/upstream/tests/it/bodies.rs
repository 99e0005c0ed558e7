//! Response bodies: complete, stalled, truncated, encoded.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use flate2::Compression;
use flate2::write::GzEncoder;
use network::{Peer, ok, post, send_once, single_host, tcp};
use sluicegate_upstream::IncomingBody;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep};

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

/// A response with this coding and body, with `Content-Length`, chunked, or until the connection closes.
fn encoded(coding: &str, body: &[u8]) -> [Vec<u8>; 3] {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n");
    let length = body.len();
    let chunk =
        |data: &[u8]| [format!("{length:x}\r\n").as_bytes(), data, b"\r\n0\r\n\r\n"].concat();
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    [
        [
            format!("{head}Content-Length: {length}\r\n\r\n").as_bytes(),
            body,
        ]
        .concat(),
        [chunked.as_bytes(), &chunk(body)].concat(),
        [format!("{head}\r\n").as_bytes(), body].concat(),
    ]
}

/// `Hi.` from the programs `gzip -n` and `zstd`.
const HI_GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xf3\xc8\xd4\x03\0K\xd8!\xe9\x03\0\0\0";
const HI_ZSTD: &[u8] = b"\x28\xb5\x2f\xfd\x04\x58\x19\x00\x00\x48\x69\x2e\xcb\x1f\x24\x3b";

#[tokio::test]
async fn an_encoded_body_is_decoded() {
    for (coding, body) in [("gzip", HI_GZIP), ("x-gzip", HI_GZIP), ("zstd", HI_ZSTD)] {
        for response in encoded(coding, body) {
            let decoded = body_of(response.clone()).await.collect(3).await;
            assert_eq!(decoded.unwrap(), "Hi.", "{coding}");
            let (chunks, error) = read(body_of(response).await).await;
            assert!(error.is_none(), "{coding}: {error:?}");
            assert_eq!(chunks.concat(), b"Hi.");
        }
    }
}

/// The limit is for the decoded body, and a bomb is not decoded beyond it.
#[tokio::test]
async fn an_encoded_body_over_the_limit_is_rejected() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![b' '; 10 << 20]).unwrap();
    let bomb = encoder.finish().unwrap();
    for response in encoded("gzip", &bomb) {
        let whole = body_of(response.clone()).await.collect(10 << 20).await;
        assert_eq!(whole.unwrap().len(), 10 << 20);
        let body = body_of(response.clone()).await;
        let error = body.collect((10 << 20) - 1).await.unwrap_err();
        assert!(matches!(error, EngineError::Upstream(_)), "{error}");
        let (chunks, error) = read(body_of(response).await.at_most(1 << 20)).await;
        assert!(matches!(error, Some(EngineError::Upstream(_))), "{error:?}");
        assert!(chunks.concat().len() <= 1 << 20);
    }
}

#[tokio::test]
async fn an_encoded_body_that_is_cut_or_invalid_fails() {
    for (coding, body) in [("gzip", HI_GZIP), ("zstd", HI_ZSTD)] {
        for at in 1..body.len() {
            for response in encoded(coding, &body[..at]) {
                let error = body_of(response).await.collect(3).await.unwrap_err();
                assert!(
                    matches!(error, EngineError::Truncated(_)),
                    "{coding} at {at}: {error}"
                );
            }
        }
        for response in encoded(coding, b"{\"text\":\"Hi.\"}") {
            let (chunks, error) = read(body_of(response).await).await;
            assert!(chunks.is_empty());
            assert!(matches!(error, Some(EngineError::Upstream(_))), "{error:?}");
        }
    }
}

/// Each event is decoded when it has arrived: the server sends the next one only after it was read.
#[tokio::test]
async fn an_encoded_stream_is_decoded_as_it_comes() {
    let next = Arc::new(Notify::new());
    let permit = Arc::clone(&next);
    let serve = move |_, mut peer: Peer| {
        let permit = Arc::clone(&permit);
        async move {
            peer.request().await;
            peer.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
                .await;
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            for event in EVENTS {
                encoder.write_all(event.as_bytes()).unwrap();
                encoder.flush().unwrap();
                peer.send(std::mem::take(encoder.get_mut())).await;
                permit.notified().await;
            }
            peer.send(encoder.finish().unwrap()).await;
        }
    };
    let incoming = send_once(&single_host(serve).1, &post("{}")).await.unwrap();
    let mut body = incoming.body.with_events();
    for event in EVENTS {
        assert_eq!(body.chunk().await.unwrap().unwrap(), event);
        next.notify_one();
    }
    assert_eq!(body.chunk().await.unwrap(), None);
}

const EVENTS: [&str; 3] = ["data: 1\n\n", "data: 2\n\n", "data: [DONE]\n\n"];

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
