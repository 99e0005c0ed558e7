//! L: requests and connections that are too large or too many.

use std::net::Shutdown;
use std::time::{Duration, Instant};

use serde_json::Value;
use simulator::{Protocol, Simulator, honest};

use crate::client::{Connection, Request};
use crate::house::{self, CLIENT_KEY, House, Plan};
use crate::question::ask;
use crate::raw::{Raw, say};
use crate::server::{await_that, binary, by_shell};

fn house(limits: &str) -> (House, Simulator) {
    let simulator = Simulator::start(honest::answer).unwrap();
    (House::before(&simulator, "their-model", limits, ""), simulator)
}

fn question() -> Value {
    ask(Protocol::Chat, "chat", "Hello.", false)
}

/// A head of a request for the models, of this target and with these further lines.
fn list(target: &str, lines: &str) -> String {
    format!(
        "GET {target} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {CLIENT_KEY}\r\nconnection: close\r\n\
         {lines}\r\n"
    )
}

/// A target over 8 KiB is 414 in the gateway's words; a head over 64 KiB or of more than 100 lines is 431.
#[test]
fn l04_heads_are_bounded() {
    let (house, _simulator) = house("");
    let of_length = |length: usize| {
        let target = format!("/v1/models?{}", "x".repeat(length - "/v1/models?".len()));
        say(house.address(), list(&target, ""))
    };
    assert_eq!(of_length(8191).statuses(), [200]);
    assert_eq!(of_length(8192).statuses(), [200]);
    let long = of_length(8193);
    assert_eq!(long.statuses(), [414]);
    assert!(long.has("\"target_too_long\"") && long.has("\"invalid_request_error\""), "{}", long.text());

    let of_lines = |lines: usize| say(house.address(), list("/v1/models", &"x: y\r\n".repeat(lines - 3))).statuses();
    assert_eq!((of_lines(99), of_lines(100), of_lines(101)), (vec![200], vec![200], vec![431]));

    let of_bytes = |bytes: usize| {
        let rest = bytes - list("/v1/models", "x: \r\n").len();
        say(house.address(), list("/v1/models", &format!("x: {}\r\n", "y".repeat(rest)))).statuses()
    };
    let limit = 64 << 10;
    assert_eq!((of_bytes(limit - 1), of_bytes(limit), of_bytes(limit + 1)), (vec![200], vec![200], vec![431]));
    assert_eq!(of_bytes(1 << 20), [431]);
    // Without waiting for its end.
    let endless = list("/v1/models", &format!("x: {}", "y".repeat(2 * limit)));
    assert_eq!(say(house.address(), endless).statuses(), [431]);
}

/// A body over its limit is 413, which is read by a client that sends all of it before it listens.
#[test]
fn l05_who_sends_too_much_is_told_so() {
    let (house, simulator) = house("json_body = \"16KiB\"\n");
    let body = vec![b' '; 4 << 20];
    let declared = Request::post_bytes("/v1/chat/completions", &body).bearer(CLIENT_KEY).bytes();
    let head = list("/v1/chat/completions", "transfer-encoding: chunked\r\n").replacen("GET", "POST", 1);
    let chunks = format!("1000\r\n{}\r\n", " ".repeat(0x1000)).repeat(1000);
    let chunked = format!("{head}{chunks}0\r\n\r\n").into_bytes();
    for bytes in [declared, chunked] {
        for _ in 0..50 {
            let mut raw = Raw::open(house.address());
            assert!(raw.send(&bytes), "all of it is taken");
            let said = raw.hear();
            assert_eq!(said.statuses(), [413]);
            assert!(said.has("\"request_too_large\"") && said.text().ends_with('}'), "{}", said.text());
        }
    }
    assert_eq!(simulator.requests().len(), 0);
}

/// So is one whose head came together with the request before it.
#[test]
fn l05_who_sends_too_much_behind_another_is_told_so() {
    let (house, _simulator) = house("json_body = \"16KiB\"\n");
    let body = vec![b' '; 4 << 20];
    let bytes = Request::post_bytes("/v1/chat/completions", &body).bearer(CLIENT_KEY).bytes();
    let both = [list("/v1/models", "").replace("connection: close\r\n", "").into_bytes(), bytes].concat();
    for _ in 0..50 {
        let mut raw = Raw::open(house.address());
        assert!(raw.send(&both), "all of it is taken");
        assert_eq!(raw.hear().statuses(), [200, 413]);
    }
}

/// The limit of a body is exact, however it is framed.
#[test]
fn l05_a_body_may_be_as_large_as_the_limit() {
    let (house, _simulator) = house("json_body = \"16KiB\"\n");
    let limit = 16 << 10;
    for (length, status) in [(limit - 1, 200), (limit, 200), (limit + 1, 413)] {
        let body = format!("{:length$}", question().to_string());
        let declared = Request::post_bytes("/v1/chat/completions", body.as_bytes()).bearer(CLIENT_KEY);
        assert_eq!(declared.send(house.address()).status, status, "{length}");
        let head = list("/v1/chat/completions", "transfer-encoding: chunked\r\n").replacen("GET", "POST", 1);
        let chunked = format!("{head}{length:x}\r\n{body}\r\n0\r\n\r\n");
        assert_eq!(say(house.address(), chunked).statuses(), [status], "{length}");
    }
}

/// Bodies share a bound of memory: who comes when it is used up is told 503 and when to come back.
#[test]
fn l06_bodies_share_their_memory() {
    let limits = "json_body = \"64KiB\"\nedit_body = \"64KiB\"\nbody_memory = \"128KiB\"\n";
    let (house, _simulator) = house(limits);
    let body = format!("{:40000}", question().to_string());
    let request = Request::post_bytes("/v1/chat/completions", body.as_bytes()).bearer(CLIENT_KEY);
    let bytes = request.clone().header("connection", "close").bytes();
    // All but the last byte: what came is held.
    let mut held: Vec<_> = (0..20)
        .map(|_| {
            let mut raw = Raw::open(house.address());
            raw.send(&bytes[..bytes.len() - 1]);
            raw
        })
        .collect();
    let shed = || house.sum("sluicegate_requests_total{route=\"chat_completions\",status=\"503\"");
    await_that("all but three are turned away", || shed() == 17.0);
    let mut served = 0;
    for raw in &mut held {
        raw.send(&bytes[bytes.len() - 1..]);
        let said = raw.hear();
        if said.statuses() == [200] {
            served += 1;
        } else {
            assert_eq!(said.statuses(), [503]);
            assert!(said.has("\r\nretry-after: 1\r\n") && said.has("\"service_unavailable\""), "{}", said.text());
        }
    }
    assert_eq!(served, 3);
    assert_eq!(request.send(house.address()).status, 200, "all of it is free again");
}

/// Past the most connections newcomers wait; those who are there are served, and so are operators.
#[test]
fn l07_newcomers_wait_for_a_place() {
    let (house, _simulator) = house("connections = 8\n");
    let request = house::request(Protocol::Chat, &question()).bytes();
    let mut inside: Vec<Connection> = Vec::new();
    let full = || house.gateway.metric("sluicegate_connections_full_total") >= 1.0;
    while !full() {
        let mut connection = Connection::open(house.address());
        connection.send(&request);
        assert_eq!(connection.response().status, 200);
        inside.push(connection);
    }
    assert!((6..=8).contains(&inside.len()), "{}", inside.len());
    let mut outside = Connection::open(house.address());
    outside.send(&request);
    for connection in &mut inside {
        connection.send(&request);
        assert_eq!(connection.response().status, 200);
    }
    assert_eq!(Request::get("/readyz").send(house.gateway.admin.unwrap()).status, 200);
    assert_eq!(house.gateway.metric("sluicegate_connections"), inside.len() as f64);
    inside.pop().unwrap().vanish(Shutdown::Both);
    assert_eq!(outside.response().status, 200, "there is a place now");
}

/// However many come, there are descriptors left to ask upstreams and to answer operators.
#[test]
fn l07_clients_leave_descriptors_to_others() {
    let (house, _simulator) = house_with_descriptors(48);
    let request = house::request(Protocol::Chat, &question()).bytes();
    let mut inside = Connection::open(house.address());
    inside.send(&request);
    assert_eq!(inside.response().status, 200);
    let _crowd: Vec<_> = (0..64).map(|_| Raw::open(house.address())).collect();
    await_that("there are no places left", || house.gateway.metric("sluicegate_connections_full_total") >= 1.0);
    // A quarter, where there are so few; each listener may hold a place for the next one who comes.
    let inside_now = house.gateway.metric("sluicegate_connections");
    assert!((10.0..=12.0).contains(&inside_now), "{inside_now}");
    assert_eq!(Request::get("/livez").send(house.gateway.admin.unwrap()).status, 200);
    inside.send(&request);
    assert_eq!(inside.response().status, 200);
    let log = house.gateway.log.lock().unwrap();
    assert!(log.contains("limits.connections is lowered") && !log.contains("cannot accept"), "{log}");
}

/// Out of descriptors it waits and does not spin; once there are some again it serves as before.
#[test]
fn l08_descriptors_run_out() {
    let (house, _simulator) = house_with_descriptors(48);
    // Operators are not counted.
    let crowd: Vec<_> = (0..64).map(|_| Raw::open(house.gateway.admin.unwrap())).collect();
    let complaints = || house.gateway.log.lock().unwrap().matches("cannot accept connections just now").count();
    await_that("there are none left", || complaints() > 0);
    let begun = now();
    await_that("it has tried a few times more", || complaints() > 4);
    assert!(begun.elapsed() > Duration::from_millis(200), "it does not spin");
    drop(crowd);
    assert_eq!(house.ask(Protocol::Chat, &question()).status, 200);
    assert_eq!(Request::get("/livez").send(house.gateway.admin.unwrap()).status, 200);
}

/// Without a body: 400 where one is needed. With one where none is: it is passed over, and never taken for a request.
#[test]
fn l12_bodies_where_none_belong() {
    let (house, _simulator) = house("");
    let bodiless = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {CLIENT_KEY}\r\n\
         connection: close\r\n\r\n"
    );
    let said = say(house.address(), bodiless);
    assert_eq!(said.statuses(), [400]);
    assert!(said.has("\"invalid_json\""), "{}", said.text());

    let smuggled = list("/v1/nope", "");
    for (method, status) in [("GET", 200), ("HEAD", 405)] {
        for framing in ["length", "chunks"] {
            let (lines, body) = match framing {
                "length" => (format!("content-length: {}\r\n", smuggled.len()), smuggled.clone()),
                _ => (
                    "transfer-encoding: chunked\r\n".to_owned(),
                    format!("{:x}\r\n{smuggled}\r\n0\r\n\r\n", smuggled.len()),
                ),
            };
            let first = list("/v1/models", &lines).replacen("GET", method, 1).replacen("connection: close\r\n", "", 1);
            let said = say(house.address(), first + &body + &list("/v1/models", ""));
            let statuses = said.statuses();
            assert!(statuses == [status] || statuses == [status, 200], "{method} with {framing}: {statuses:?}");
        }
    }
}

/// A gateway to which the system allows so many descriptors.
fn house_with_descriptors(most: usize) -> (House, Simulator) {
    let simulator = Simulator::start(honest::answer).unwrap();
    let target = r#"[{ upstream = "server", model = "their-model" }]"#;
    let plan = Plan::new("").upstream("server", Protocol::Chat, &simulator.base_url(), "");
    let limited = by_shell(&format!("ulimit -n {most} && exec \"$@\""), &binary());
    (plan.model("chat", Protocol::Chat, target).start_by(limited), simulator)
}

#[allow(clippy::disallowed_methods, reason = "that nothing spins is seen by a clock")]
fn now() -> Instant {
    Instant::now()
}
