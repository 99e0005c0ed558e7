//! L: requests and connections that are too large or too many.

use std::net::Shutdown;
use std::time::{Duration, Instant};

use serde_json::Value;
use simulator::{Protocol, Simulator, honest};
use testkit::requests::{self, ask};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Request, await_that, by_shell, exchange};

use crate::GATEWAY;

fn question() -> Value {
    ask(Protocol::Chat, "chat", "Hello.", false)
}

/// Returns the head of a request for the models list with this target and these additional header
/// lines.
fn list(target: &str, lines: &str) -> String {
    format!(
        "GET {target} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {CLIENT_KEY}\r\nconnection: close\r\n\
         {lines}\r\n"
    )
}

/// A target over 8 KiB is refused with 414 and an error body of the gateway; a head over 64 KiB or
/// with more than 100 header lines is refused with 431.
#[test]
fn l04_heads_are_bounded() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let of_length = |length: usize| {
        let target = format!("/v1/models?{}", "x".repeat(length - "/v1/models?".len()));
        exchange(gateway.address(), list(&target, ""))
    };
    assert_eq!(of_length(8191).statuses(), [200]);
    assert_eq!(of_length(8192).statuses(), [200]);
    let long = of_length(8193);
    assert_eq!(long.statuses(), [414]);
    assert!(
        long.has("\"target_too_long\"") && long.has("\"invalid_request_error\""),
        "{}",
        long.text()
    );

    let of_lines = |lines: usize| {
        exchange(
            gateway.address(),
            list("/v1/models", &"x: y\r\n".repeat(lines - 3)),
        )
        .statuses()
    };
    assert_eq!(
        (of_lines(99), of_lines(100), of_lines(101)),
        (vec![200], vec![200], vec![431])
    );

    let of_bytes = |bytes: usize| {
        let rest = bytes - list("/v1/models", "x: \r\n").len();
        exchange(
            gateway.address(),
            list("/v1/models", &format!("x: {}\r\n", "y".repeat(rest))),
        )
        .statuses()
    };
    let limit = 64 << 10;
    assert_eq!(
        (of_bytes(limit - 1), of_bytes(limit), of_bytes(limit + 1)),
        (vec![200], vec![200], vec![431])
    );
    assert_eq!(of_bytes(1 << 20), [431]);
    // The end of the head is never sent.
    let endless = list("/v1/models", &format!("x: {}", "y".repeat(2 * limit)));
    assert_eq!(exchange(gateway.address(), endless).statuses(), [431]);
}

/// A body over its limit is refused with 413, which also reaches a client that sends the complete
/// body before it reads.
#[test]
fn l05_a_request_that_is_too_large_is_refused() {
    let (gateway, simulator) = GATEWAY.with_upstream("json_body = \"16KiB\"\n");
    let body = vec![b' '; 4 << 20];
    let declared = Request::post_bytes("/v1/chat/completions", &body)
        .bearer(CLIENT_KEY)
        .bytes();
    let head =
        list("/v1/chat/completions", "transfer-encoding: chunked\r\n").replacen("GET", "POST", 1);
    let chunks = format!("1000\r\n{}\r\n", " ".repeat(0x1000)).repeat(1000);
    let chunked = format!("{head}{chunks}0\r\n\r\n").into_bytes();
    for bytes in [declared, chunked] {
        for _ in 0..50 {
            let mut raw = Connection::open(gateway.address());
            assert!(raw.try_send(&bytes), "all of it is taken");
            let received = raw.received_until_closed();
            assert_eq!(received.statuses(), [413]);
            assert!(
                received.has("\"request_too_large\"") && received.text().ends_with('}'),
                "{}",
                received.text()
            );
        }
    }
    assert_eq!(simulator.requests().len(), 0);
}

/// A body over its limit is refused with 413 if its head arrived together with the previous
/// request, too.
#[test]
fn l05_a_pipelined_request_that_is_too_large_is_refused() {
    let (gateway, _simulator) = GATEWAY.with_upstream("json_body = \"16KiB\"\n");
    let body = vec![b' '; 4 << 20];
    let bytes = Request::post_bytes("/v1/chat/completions", &body)
        .bearer(CLIENT_KEY)
        .bytes();
    let both = [
        list("/v1/models", "")
            .replace("connection: close\r\n", "")
            .into_bytes(),
        bytes,
    ]
    .concat();
    for _ in 0..50 {
        let mut raw = Connection::open(gateway.address());
        assert!(raw.try_send(&both), "all of it is taken");
        assert_eq!(raw.received_until_closed().statuses(), [200, 413]);
    }
}

/// The body limit is exact, with Content-Length and with chunked transfer coding.
#[test]
fn l05_a_body_may_be_as_large_as_the_limit() {
    let (gateway, _simulator) = GATEWAY.with_upstream("json_body = \"16KiB\"\n");
    let limit = 16 << 10;
    for (length, status) in [(limit - 1, 200), (limit, 200), (limit + 1, 413)] {
        let body = format!("{:length$}", question().to_string());
        let declared =
            Request::post_bytes("/v1/chat/completions", body.as_bytes()).bearer(CLIENT_KEY);
        assert_eq!(declared.send(gateway.address()).status, status, "{length}");
        let head = list("/v1/chat/completions", "transfer-encoding: chunked\r\n")
            .replacen("GET", "POST", 1);
        let chunked = format!("{head}{length:x}\r\n{body}\r\n0\r\n\r\n");
        assert_eq!(
            exchange(gateway.address(), chunked).statuses(),
            [status],
            "{length}"
        );
    }
}

/// Request bodies share one memory limit: when it is exhausted, further requests are refused with
/// 503 and Retry-After.
#[test]
fn l06_bodies_share_their_memory() {
    let limits = "json_body = \"64KiB\"\nedit_body = \"64KiB\"\nbody_memory = \"128KiB\"\n\
                  body_memory_per_key = \"128KiB\"\n";
    let (gateway, _simulator) = GATEWAY.with_upstream(limits);
    let body = format!("{:40000}", question().to_string());
    let request = Request::post_bytes("/v1/chat/completions", body.as_bytes()).bearer(CLIENT_KEY);
    let bytes = request.clone().header("connection", "close").bytes();
    // All but the last byte: the received bytes are held.
    let mut held: Vec<_> = (0..20)
        .map(|_| {
            let mut raw = Connection::open(gateway.address());
            raw.try_send(&bytes[..bytes.len() - 1]);
            raw
        })
        .collect();
    let shed =
        || gateway.sum("sluicegate_requests_total{route=\"chat_completions\",status=\"503\"");
    await_that("all but three are turned away", || shed() == 17.0);
    let mut served = 0;
    for raw in &mut held {
        raw.try_send(&bytes[bytes.len() - 1..]);
        let received = raw.received_until_closed();
        if received.statuses() == [200] {
            served += 1;
        } else {
            assert_eq!(received.statuses(), [503]);
            assert!(
                received.has("\r\nretry-after: 1\r\n") && received.has("\"service_unavailable\""),
                "{}",
                received.text()
            );
        }
    }
    assert_eq!(served, 3);
    assert_eq!(
        request.send(gateway.address()).status,
        200,
        "all of it is free again"
    );
}

/// Beyond the connection limit new connections wait, while open connections and the admin listener
/// are served.
#[test]
fn l07_newcomers_wait_for_a_place() {
    let (gateway, _simulator) = GATEWAY.with_upstream("connections = 8\n");
    let request = requests::request(Protocol::Chat, &question()).bytes();
    let mut inside: Vec<Connection> = Vec::new();
    let full = || gateway.metric("sluicegate_connections_full_total") >= 1.0;
    while !full() {
        let mut connection = Connection::open(gateway.address());
        connection.send(&request);
        assert_eq!(connection.response().status, 200);
        inside.push(connection);
    }
    assert!((6..=8).contains(&inside.len()), "{}", inside.len());
    let mut outside = Connection::open(gateway.address());
    outside.send(&request);
    for connection in &mut inside {
        connection.send(&request);
        assert_eq!(connection.response().status, 200);
    }
    assert_eq!(
        Request::get("/readyz").send(gateway.admin.unwrap()).status,
        200
    );
    assert_eq!(
        gateway.metric("sluicegate_connections"),
        inside.len() as f64
    );
    inside.pop().unwrap().disconnect(Shutdown::Both);
    assert_eq!(outside.response().status, 200, "there is a place now");
}

/// However many clients connect, file descriptors remain for upstream connections and for the admin
/// listener.
#[test]
fn l07_clients_leave_descriptors_to_others() {
    let (gateway, _simulator) = with_descriptors(48);
    let request = requests::request(Protocol::Chat, &question()).bytes();
    let mut inside = Connection::open(gateway.address());
    inside.send(&request);
    assert_eq!(inside.response().status, 200);
    let _crowd: Vec<_> = (0..64)
        .map(|_| Connection::open(gateway.address()))
        .collect();
    await_that("there are no places left", || {
        gateway.metric("sluicegate_connections_full_total") >= 1.0
    });
    // A quarter, where there are few; each listener may reserve a slot for the next connection.
    let inside_now = gateway.metric("sluicegate_connections");
    assert!((10.0..=12.0).contains(&inside_now), "{inside_now}");
    assert_eq!(
        Request::get("/livez").send(gateway.admin.unwrap()).status,
        200
    );
    inside.send(&request);
    assert_eq!(inside.response().status, 200);
    let log = gateway.log.lock().unwrap();
    assert!(
        log.contains("limits.connections is lowered") && !log.contains("cannot accept"),
        "{log}"
    );
}

/// When file descriptors run out the accept loop waits without spinning, and it accepts connections
/// again once descriptors are available.
#[test]
fn l08_descriptors_run_out() {
    let (gateway, _simulator) = with_descriptors(48);
    // Connections to the admin listener are not counted.
    let crowd: Vec<_> = (0..64)
        .map(|_| Connection::open(gateway.admin.unwrap()))
        .collect();
    let complaints = || {
        gateway
            .log
            .lock()
            .unwrap()
            .matches("cannot accept connections, retrying")
            .count()
    };
    await_that("no file descriptor is left", || complaints() > 0);
    let started = now();
    await_that("it has tried a few times more", || complaints() > 4);
    assert!(
        started.elapsed() > Duration::from_millis(200),
        "it does not spin"
    );
    drop(crowd);
    assert_eq!(gateway.ask(Protocol::Chat, &question()).status, 200);
    assert_eq!(
        Request::get("/livez").send(gateway.admin.unwrap()).status,
        200
    );
}

/// A missing body is refused with 400 where one is required. An unexpected body is discarded, and
/// never parsed as the next request.
#[test]
fn l12_bodies_where_none_belong() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let bodiless = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {CLIENT_KEY}\r\n\
         connection: close\r\n\r\n"
    );
    let received = exchange(gateway.address(), bodiless);
    assert_eq!(received.statuses(), [400]);
    assert!(received.has("\"invalid_json\""), "{}", received.text());

    let smuggled = list("/v1/nope", "");
    for (method, status) in [("GET", 200), ("PUT", 405)] {
        for framing in ["length", "chunks"] {
            let (lines, body) = match framing {
                "length" => (
                    format!("content-length: {}\r\n", smuggled.len()),
                    smuggled.clone(),
                ),
                _ => (
                    "transfer-encoding: chunked\r\n".to_owned(),
                    format!("{:x}\r\n{smuggled}\r\n0\r\n\r\n", smuggled.len()),
                ),
            };
            let first = list("/v1/models", &lines)
                .replacen("GET", method, 1)
                .replacen("connection: close\r\n", "", 1);
            let received = exchange(gateway.address(), first + &body + &list("/v1/models", ""));
            let statuses = received.statuses();
            assert!(
                statuses == [status] || statuses == [status, 200],
                "{method} with {framing}: {statuses:?}"
            );
        }
    }
}

/// A gateway with this limit of file descriptors.
fn with_descriptors(most: usize) -> (Gateway, Simulator) {
    let simulator = Simulator::start(honest::answer).unwrap();
    let target = r#"[{ upstream = "server", model = "their-model" }]"#;
    let plan = Config::new("").upstream("server", Protocol::Chat, &simulator.base_url(), "");
    let limited = by_shell(
        &format!("ulimit -n {most} && exec \"$@\""),
        &GATEWAY.command(),
    );
    (
        plan.model("chat", Protocol::Chat, target)
            .start_by(GATEWAY, limited),
        simulator,
    )
}

#[allow(
    clippy::disallowed_methods,
    reason = "that nothing spins is seen by a clock"
)]
fn now() -> Instant {
    Instant::now()
}
