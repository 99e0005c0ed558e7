//! Streams of Responses over WebSocket.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use futures_util::{SinkExt as _, StreamExt as _};
use network::{Ca, Certificate, Peer, World, for_stream, ok, options, send_once, url};
use sluicegate_upstream::{ClientSockets, Connection, Credential, Incoming, Options, Outgoing};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, accept_async, accept_hdr_async};

const CREATED: &str = r#"{"type":"response.created","response":{"id":"resp_1"}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","response":{"id":"resp_1"}}"#;

type Server = WebSocketStream<Box<dyn Connection>>;

/// The settings of `http://a.example/v1` with WebSockets.
fn with_websocket() -> Options {
    Options {
        websocket: true,
        ..options()
    }
}

/// A request for a stream by the client with these sockets.
fn turn(sockets: &ClientSockets) -> Outgoing {
    Outgoing {
        sockets: Some(sockets.clone()),
        ..for_stream()
    }
}

/// Answers each message with a short stream.
async fn serve(mut server: Server) {
    while let Some(Ok(Message::Text(_))) = server.next().await {
        for event in [CREATED, COMPLETED] {
            server.send(Message::text(event)).await.unwrap();
        }
    }
}

/// A network in which `a.example` reads one message, and then does this.
fn asked<F>(act: impl Fn(Server) -> F + Copy + Send + Sync + 'static) -> World
where
    F: Future<Output = ()> + Send + 'static,
{
    let world = World::default();
    world.serve("a.example", move |_, peer| async move {
        let mut server = accept_async(peer.io).await.unwrap();
        server.next().await.unwrap().unwrap();
        act(server).await;
    });
    world
}

/// Reads a body to its failure. Returns what came before, and the failure.
async fn failure(response: Result<Incoming, EngineError>) -> (String, EngineError) {
    let mut body = response.unwrap().body.with_events();
    let mut read = String::new();
    loop {
        match body.chunk().await {
            Ok(chunk) => {
                read += str::from_utf8(&chunk.unwrap()).unwrap();
                body.note_read(true, 0).unwrap();
            }
            Err(error) => return (read, error),
        }
    }
}

#[tokio::test]
async fn events_are_an_event_stream_over_tls() {
    let (ca, world) = (Ca::generate(), World::default());
    let acceptor = ca.acceptor(Certificate::Good);
    world.serve("a.example", move |_, peer| {
        let acceptor = acceptor.clone();
        async move {
            let io = acceptor.accept(peer.io).await.unwrap();
            let io: Box<dyn Connection> = Box::new(TlsStream::from(io));
            serve(accept_async(io).await.unwrap()).await;
        }
    });
    let upstream = world.upstream(Options {
        base_url: url("https://a.example/v1"),
        roots: Some(ca.pem.into_bytes()),
        ..with_websocket()
    });
    let sockets = ClientSockets::default();
    for _ in 0..2 {
        let response = send_once(&upstream, &turn(&sockets)).await.unwrap();
        assert!(response.is_event_stream);
        assert_eq!(
            response.body.collect(1 << 10).await.unwrap(),
            format!(
                "event: response.created\ndata: {CREATED}\n\n\
                 event: response.completed\ndata: {COMPLETED}\n\n"
            )
        );
    }
    assert_eq!(world.dials(), 1);
}

/// A connection with a key that was replaced is not used again.
#[tokio::test]
async fn a_replaced_key_opens_a_new_connection() {
    let (world, keys) = (World::default(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&keys);
    world.serve("a.example", move |_, peer| {
        let seen = Arc::clone(&seen);
        async move {
            #[allow(clippy::result_large_err, reason = "a callback of tungstenite")]
            let note = |request: &Request, response: Response| {
                let key = request.headers()["authorization"].to_str().unwrap();
                seen.lock().unwrap().push(key.to_owned());
                Ok(response)
            };
            serve(accept_hdr_async(peer.io, note).await.unwrap()).await;
        }
    });
    let upstream = world.upstream(Options {
        credential: Some(Credential::bearer("first-key").unwrap()),
        ..with_websocket()
    });
    let sockets = ClientSockets::default();
    for key in [None, None, Some("second-key"), None] {
        if let Some(key) = key {
            upstream.replace_credential(Credential::bearer(key).unwrap());
        }
        let response = send_once(&upstream, &turn(&sockets)).await.unwrap();
        response.body.collect(1 << 10).await.unwrap();
    }
    assert_eq!(
        *keys.lock().unwrap(),
        ["Bearer first-key", "Bearer second-key"]
    );
}

/// Returns true if less than a tenth of a second has passed since `limit` after `started`.
fn is_at(started: Instant, limit: Duration) -> bool {
    let waited = started.elapsed();
    (limit..limit + Duration::from_millis(100)).contains(&waited)
}

#[tokio::test(start_paused = true)]
async fn u05_u07_each_wait_has_its_timeout() {
    let world = World::default();
    world.serve("a.example", |_, mut peer: Peer| async move {
        peer.closed().await;
    });
    let started = Instant::now();
    let upstream = world.upstream(with_websocket());
    let sent = send_once(&upstream, &turn(&ClientSockets::default())).await;
    assert_eq!(
        sent.unwrap_err().to_string(),
        EngineError::Upstream("WebSocket handshake failed: timeout".to_owned()).to_string()
    );
    assert!(is_at(started, Duration::from_secs(5)), "the handshake");

    let silent = asked(|mut server| async move {
        server.next().await;
    });
    let started = Instant::now();
    let upstream = silent.upstream(with_websocket());
    let sent = send_once(&upstream, &turn(&ClientSockets::default())).await;
    assert!(matches!(sent, Err(EngineError::Unanswered(_))));
    assert!(is_at(started, Duration::from_secs(120)), "the first event");

    // A ping is a sign of life, as a comment is.
    let stalled = asked(|mut server| async move {
        server.send(Message::text(CREATED)).await.unwrap();
        sleep(Duration::from_secs(200)).await;
        server.send(Message::Ping(Bytes::new())).await.unwrap();
        while server.next().await.is_some() {}
    });
    let started = Instant::now();
    let upstream = stalled.upstream(with_websocket());
    let sent = send_once(&upstream, &turn(&ClientSockets::default())).await;
    let (read, error) = failure(sent).await;
    assert!(read.ends_with("\n\n: ping\n\n"), "{read}");
    assert!(matches!(error, EngineError::Unanswered(_)), "{error}");
    assert!(is_at(started, Duration::from_secs(500)), "the next event");
}

/// A message has the limit of an event, 32 MiB, and is refused before it is received.
#[tokio::test]
async fn a_message_that_is_too_long_fails() {
    let long = asked(|mut server| async move {
        server.send(Message::text(CREATED)).await.unwrap();
        // A text of 32 MiB and a byte (RFC 6455, section 5.2).
        let head = [0x81, 127, 0, 0, 0, 0, 2, 0, 0, 1];
        server.get_mut().write_all(&head).await.unwrap();
        while let Some(Ok(_)) = server.next().await {}
    });
    let upstream = long.upstream(with_websocket());
    let sent = send_once(&upstream, &turn(&ClientSockets::default())).await;
    let (_, error) = failure(sent).await;
    assert!(
        matches!(&error, EngineError::Upstream(why) if why.starts_with("malformed message")),
        "{error}"
    );
}

/// Closes because a message is too big (1009 of RFC 6455, section 7.4.1).
async fn close_for_size(server: &mut Server) {
    let frame = CloseFrame {
        code: CloseCode::Size,
        reason: "message too big".into(),
    };
    server.close(Some(frame)).await.unwrap();
}

/// A server closes after such a message, or in the middle of it. The circuit breaker counts no failure:
/// it would be open after twenty.
#[tokio::test]
async fn a_request_that_is_too_big_for_a_message_goes_over_http() {
    for length in [10, 1 << 20] {
        let world = World::default();
        world.serve("a.example", |nth, mut peer: Peer| async move {
            if nth == 1 {
                while peer.request().await.is_some() {
                    peer.send(ok("over HTTP")).await;
                }
            } else {
                close_for_size(&mut accept_async(peer.io).await.unwrap()).await;
            }
        });
        let upstream = world.upstream(with_websocket());
        let long = Outgoing {
            body: Bytes::from(format!(r#"{{"input":"{}"}}"#, "x".repeat(length))).into(),
            ..turn(&ClientSockets::default())
        };
        for _ in 0..25 {
            let response = send_once(&upstream, &long).await.unwrap();
            assert_eq!(response.body.collect(20).await.unwrap(), "over HTTP");
        }
        assert_eq!(world.dials(), 25 + 1, "{length}");
    }
}

/// After an event the server has begun to work on the request.
#[tokio::test]
async fn a_close_for_a_size_after_an_event_is_a_failure() {
    let world = asked(|mut server| async move {
        server.send(Message::text(CREATED)).await.unwrap();
        close_for_size(&mut server).await;
    });
    let upstream = world.upstream(with_websocket());
    let (read, error) = failure(send_once(&upstream, &turn(&ClientSockets::default())).await).await;
    assert_eq!(
        read,
        format!("event: response.created\ndata: {CREATED}\n\n")
    );
    assert!(matches!(error, EngineError::Truncated(_)), "{error}");
    assert_eq!(world.dials(), 1);
}

/// A server that sends faster than its reader reads has to wait.
#[tokio::test]
async fn u19_events_that_are_not_read_stop_the_server() {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let endless = asked(|mut server| async move {
        let event = format!(r#"{{"type":"x","x":"{}"}}"#, "x".repeat(1 << 10));
        while server.send(Message::text(event.clone())).await.is_ok() {
            SENT.fetch_add(1, Ordering::Relaxed);
        }
    });
    let upstream = endless.upstream(with_websocket());
    let sent = send_once(&upstream, &turn(&ClientSockets::default())).await;
    let mut body = sent.unwrap().body;
    for _ in 0..10 {
        body.chunk().await.unwrap().unwrap();
    }
    let mut before = usize::MAX;
    while before != SENT.load(Ordering::Relaxed) {
        before = SENT.load(Ordering::Relaxed);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    assert!(before < 1 << 10, "{before} KiB were sent");
}
