//! Requests over HTTP/2, several on one connection: what holds over HTTP/1 holds for each stream.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{Method, Request, Response};
use serde_json::Value;
use simulator::{Cut, Play, Protocol, Request as Asked, Step, honest, scenario};
use testkit::requests::ask;
use testkit::upstreams::{FaultTest, PATIENT, assert_closed};
use testkit::{CLIENT_KEY, Gateway, await_that};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::GATEWAY;

/// The task of a client connection, with its end.
pub(crate) type Driver = JoinHandle<Result<(), h2::Error>>;

/// Opens a connection without TLS.
#[allow(
    clippy::disallowed_methods,
    reason = "the server under test is dialled, on loopback"
)]
async fn open(address: SocketAddr) -> (SendRequest<Bytes>, Driver) {
    let socket = TcpStream::connect(address).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    (client, tokio::spawn(connection))
}

/// A POST request with the key of the tests.
fn post(path: &str) -> http::request::Builder {
    Request::builder()
        .method(Method::POST)
        .uri(format!("http://gateway{path}"))
        .header("authorization", format!("Bearer {CLIENT_KEY}"))
        .header("content-type", "application/json")
}

/// Sends a request, and returns the head of its response.
async fn send(
    client: &SendRequest<Bytes>,
    request: http::request::Builder,
    body: impl Into<Bytes>,
) -> Result<Response<RecvStream>, h2::Error> {
    let mut client = client.clone().ready().await?;
    let (response, mut stream) = client.send_request(request.body(()).unwrap(), false)?;
    stream.send_data(body.into(), true)?;
    response.await
}

async fn chat(client: &SendRequest<Bytes>, stream: bool) -> Response<RecvStream> {
    let body = ask(Protocol::Chat, "chat", "Hello.", stream).to_string();
    send(client, post("/v1/chat/completions"), body)
        .await
        .unwrap()
}

/// Reads a body to its end.
pub(crate) async fn read(response: Response<RecvStream>) -> Result<String, h2::Error> {
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        bytes.extend(data);
    }
    Ok(String::from_utf8(bytes).unwrap())
}

/// A response without the numbers that make the upstream's answers differ.
fn without_numbers(text: &str) -> String {
    let letters = text.chars();
    letters.filter(|letter| !letter.is_ascii_digit()).collect()
}

/// `HEAD` gets the head of the response to `GET`, with the length of its body and without the body
/// (RFC 9110, section 9.3.2), over both versions.
#[tokio::test(flavor = "multi_thread")]
async fn head_gets_the_head_of_get() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let (client, _driver) = open(gateway.address()).await;
    for (path, status) in [
        ("/v1/models", 200),
        ("/v1/models/chat", 200),
        ("/v1/models/absent", 404),
    ] {
        let get = send(&client, post(path).method(Method::GET), "").await;
        let body = read(get.unwrap()).await.unwrap();
        let length = body.len().to_string();
        let head = send(&client, post(path).method(Method::HEAD), "").await;
        let head = head.unwrap();
        assert_eq!(head.status(), status, "{path}");
        assert_eq!(head.headers()["content-length"], &*length, "{path}");
        assert_eq!(read(head).await.unwrap(), "", "{path}");

        let mut http1 = testkit::Connection::open(gateway.address());
        let request = testkit::Request::get(path).bearer(CLIENT_KEY);
        http1.send(request.method("HEAD").bytes());
        let head = http1.head().unwrap();
        assert_eq!(
            (head.status, head.header("content-length")),
            (status, Some(&*length))
        );
        // Nothing but the next response follows.
        http1.send(testkit::Request::get(path).bearer(CLIENT_KEY).bytes());
        let next = http1.response();
        assert_eq!((next.status, next.text().len()), (status, body.len()));
    }
    let head = send(&client, post("/v1/messages").method(Method::HEAD), "").await;
    let head = head.unwrap();
    assert_eq!(head.status(), 405);
    assert_eq!(head.headers()["allow"], "POST");
    assert_eq!(read(head).await.unwrap(), "");
    gateway.await_quiet();
}

/// A response is the same over both versions, streamed and plain.
#[tokio::test(flavor = "multi_thread")]
async fn responses_over_http2_are_those_over_http1() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let (client, _driver) = open(gateway.address()).await;
    for stream in [false, true] {
        let body = ask(Protocol::Chat, "chat", "Hello.", stream);
        let http1 = gateway.ask(Protocol::Chat, &body);
        let http2 = chat(&client, stream).await;
        assert_eq!((http1.status, http2.status().as_u16()), (200, 200));
        for name in ["content-type", "cache-control", "x-content-type-options"] {
            let value = http2
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap());
            assert_eq!(http1.header(name), value, "{name}");
        }
        assert!(!http2.headers()["x-request-id"].is_empty());
        let http2 = read(http2).await.unwrap();
        assert_eq!(without_numbers(http1.text()), without_numbers(&http2));
    }
    gateway.await_quiet();
}

/// Requests of one connection are answered at the same time, each with a permit.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_connection_do_not_wait_for_each_other() {
    let gated = |request: &Asked| Play::new().gate().then(honest::answer(request));
    let test = FaultTest::playing(GATEWAY, gated, "", PATIENT);
    let (client, _driver) = open(test.gateway.address()).await;
    let open: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { chat(&client, true).await })
        })
        .collect();
    test.await_requests(20);
    assert_eq!(test.gateway.metric("sluicegate_in_flight"), 20.0);
    assert_eq!(test.gateway.metric("sluicegate_connections"), 1.0);
    test.simulator.release_all();
    for response in open {
        let text = read(response.await.unwrap()).await.unwrap();
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    }
    test.gateway.await_quiet();
}

/// A stream that its client cancels is over: its permit is back, the upstream's connection is closed,
/// and other streams of the connection continue.
#[tokio::test(flavor = "multi_thread")]
async fn c01_canceled_streams_are_gone() {
    let scenario = scenario::named("endless-deltas").unwrap();
    let test = FaultTest::playing(GATEWAY, move |request| scenario.play(request), "", PATIENT);
    let (client, _driver) = open(test.gateway.address()).await;
    let (canceled, kept) = (chat(&client, true).await, chat(&client, true).await);
    let mut body = canceled.into_body();
    assert!(!body.data().await.unwrap().unwrap().is_empty());
    // Dropping it sends RST_STREAM with CANCEL.
    drop(body);
    assert_closed(&test.simulator, 0);
    await_that("its permit is back", || {
        test.gateway.metric("sluicegate_in_flight") == 1.0
    });
    assert_eq!(outcomes(&test.gateway), ["client_gone"]);
    let mut body = kept.into_body();
    for _ in 0..100 {
        let data = body.data().await.unwrap().unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    drop((body, client));
    assert_closed(&test.simulator, 1);
    test.gateway.await_quiet();
}

/// The outcomes in the log, once there are some.
fn outcomes(gateway: &Gateway) -> Vec<String> {
    let read = || {
        let log = gateway.log.lock().unwrap();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let outcomes = lines.filter_map(|line: Value| Some(line["outcome"].as_str()?.to_owned()));
        outcomes.collect::<Vec<_>>()
    };
    await_that("an outcome is logged", || !read().is_empty());
    read()
}

/// All requests of a connection that breaks off are gone.
#[tokio::test(flavor = "multi_thread")]
async fn c01_streams_end_with_their_connection() {
    let test = FaultTest::named(GATEWAY, "stall-head", PATIENT);
    let (client, driver) = open(test.gateway.address()).await;
    for _ in 0..3 {
        let client = client.clone();
        let body = ask(Protocol::Chat, "chat", "Hello.", true).to_string();
        let request = post("/v1/chat/completions");
        tokio::spawn(async move { send(&client, request, body).await });
    }
    test.await_requests(3);
    driver.abort();
    for number in 0..3 {
        assert_closed(&test.simulator, number);
    }
    test.gateway.await_quiet();
    await_that("all outcomes are logged", || {
        outcomes(&test.gateway).len() == 3
    });
    assert_eq!(outcomes(&test.gateway), ["client_gone"; 3]);
}

/// An upload that its client cancels is no bad request, but a client that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn c05_canceled_uploads_are_gone() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let (client, _driver) = open(gateway.address()).await;
    let mut client = client.ready().await.unwrap();
    let request = post("/v1/chat/completions").body(()).unwrap();
    let (response, mut stream) = client.send_request(request, false).unwrap();
    stream
        .send_data(Bytes::from_static(b"{\"model\":"), false)
        .unwrap();
    // The gateway has read the beginning once it has answered a later request.
    assert_eq!(chat(&client, false).await.status(), 200);
    stream.send_reset(Reason::CANCEL);
    assert!(response.await.is_err());
    await_that("both outcomes are logged", || outcomes(&gateway).len() == 2);
    assert_eq!(outcomes(&gateway), ["completed", "client_gone"]);
    assert_eq!(simulator.requests().len(), 1);
    gateway.await_quiet();
}

/// Heads and bodies have the same limits over HTTP/2 as over HTTP/1, with the same statuses.
#[tokio::test(flavor = "multi_thread")]
async fn l04_l05_limits_of_sizes_hold_over_http2() {
    let (gateway, _simulator) = GATEWAY.with_upstream("json_body = \"1KiB\"\n");
    let (client, _driver) = open(gateway.address()).await;
    let path = "/v1/chat/completions";
    let many = |count: usize| {
        let mut request = post(path);
        for number in 0..count {
            request = request.header(format!("x-{number}"), "x");
        }
        request
    };
    let long = || post(path).header("x-long", "x".repeat(70 << 10));
    let target = || post(&format!("{path}?{}", "x".repeat(9 << 10)));
    for (name, request, body, status) in [
        ("a body over its limit", post(path), " ".repeat(1025), 413),
        ("too many headers", many(200), "{}".to_owned(), 431),
        ("a head over its limit", long(), "{}".to_owned(), 431),
        ("a target over its limit", target(), "{}".to_owned(), 414),
        (
            "no key",
            Request::post(format!("http://gateway{path}")),
            "{}".to_owned(),
            401,
        ),
    ] {
        let response = send(&client, request, body).await;
        assert_eq!(response.unwrap().status().as_u16(), status, "{name}");
    }
    assert_eq!(chat(&client, false).await.status(), 200);
    gateway.await_quiet();
}

/// The host is `:authority`; another `Host` beside it is refused.
#[tokio::test(flavor = "multi_thread")]
async fn h06_authority_is_the_one_host() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let (client, _driver) = open(gateway.address()).await;
    let get = |host: Option<&str>| {
        let request = Request::builder().uri("http://gateway/v1/models");
        let request = request.header("authorization", format!("Bearer {CLIENT_KEY}"));
        match host {
            Some(host) => request.header("host", host),
            None => request,
        }
    };
    for (host, status) in [
        (None, 200),
        (Some("gateway"), 200),
        (Some("elsewhere"), 400),
    ] {
        let response = send(&client, get(host), "").await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{host:?}");
    }
}

/// At a shutdown clients get GOAWAY, open streams come to their end, and the connection is closed.
#[tokio::test(flavor = "multi_thread")]
async fn d02_streams_over_http2_are_brought_to_their_end() {
    let hesitant = |request: &Asked| {
        let whole = honest::answer(request);
        let pieces = whole.pieces().enumerate();
        let play = pieces.fold(Play::stream(), |play, (place, piece)| {
            let play = if place == 1 { play.gate() } else { play };
            play.body(piece.clone())
        });
        play.step(Step::End)
    };
    let limits = "lame_duck = \"1ms\"\ndrain = \"60s\"";
    let mut test = FaultTest::playing(GATEWAY, hesitant, limits, PATIENT);
    let (client, driver) = open(test.gateway.address()).await;
    let response = chat(&client, true).await;
    test.gateway.signal("TERM");
    let refused = async {
        loop {
            match client.clone().ready().await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => return error,
            }
        }
    };
    let error = refused.await;
    assert!(
        error.is_go_away() && error.reason() == Some(Reason::NO_ERROR),
        "{error}"
    );
    test.simulator.release_all();
    let text = read(response).await.unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    driver.await.unwrap().unwrap();
    assert!(test.gateway.wait().success());
}

/// A stream that is open at the drain deadline ends with a failure event, and not as a success.
#[tokio::test(flavor = "multi_thread")]
async fn d03_streams_over_http2_past_the_deadline_end_with_a_failure() {
    let endless = |request: &Asked| {
        let play = honest::answer(request);
        let pieces = play.pieces().count();
        play.cut_after(pieces - 1, Cut::Hold)
    };
    let limits = "lame_duck = \"1ms\"\ndrain = \"500ms\"";
    let mut test = FaultTest::playing(GATEWAY, endless, limits, PATIENT);
    let (client, _driver) = open(test.gateway.address()).await;
    let response = chat(&client, true).await;
    test.gateway.signal("TERM");
    let text = read(response).await.unwrap();
    let last = text.trim_end().rsplit("data: ").next().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert!(last["error"]["message"].is_string(), "{text}");
    assert!(test.gateway.wait().success());
    assert_eq!(outcomes(&test.gateway), ["shutdown"]);
}
