//! Connections: keep-alive, counting and closing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use sluicegate_simulator::{Cut, Play, Protocol, Simulator};
use testkit::{Connection, End, GUARD};

use crate::samples::{path, sample};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-Twice: 1\r\nx-twice: 2\r\n\r\n";

fn abc() -> Play {
    Play::events(["data: a\n\n", "data: b\n\n", "data: c\n\n"])
}

/// The same stream, without its end.
fn unended() -> Play {
    abc().cut_after(usize::MAX, Cut::Hold)
}

#[test]
fn a_connection_is_kept_and_requests_are_noted() {
    let simulator = Simulator::honest().unwrap();
    let mut client = Connection::open(simulator.address());
    let body = sample(Protocol::Chat, "a-model", "Hello.", true);
    for _ in 0..3 {
        client.post(path(Protocol::Chat), &body);
        assert_eq!(client.response().end, End::Complete);
    }
    let mut other = Connection::open(simulator.address());
    other.send(GET);
    assert_eq!(other.response().status, 404);
    let requests = simulator.requests();
    let places = requests.iter().map(|request| {
        (
            request.number,
            request.connection,
            request.nth_on_connection,
        )
    });
    assert_eq!(
        places.collect::<Vec<_>>(),
        [(0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 1, 0)]
    );
    let first = &requests[0];
    assert_eq!(
        (first.method.as_str(), first.path.as_str()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(
        (first.json(), first.model().as_str(), first.streams()),
        (body, "a-model", true)
    );
    assert_eq!(first.protocol(), Some(Protocol::Chat));
    assert_eq!(requests[3].header("X-TWICE"), Some("1"));
    assert_eq!(
        requests[3].headers.last(),
        Some(&("x-twice".to_owned(), "2".to_owned()))
    );
    assert_eq!(
        (requests[3].json(), requests[3].protocol()),
        (json!(null), None)
    );
    assert!(requests.is_sorted_by_key(|request| request.at));
    assert_eq!(
        (simulator.connections(), simulator.open_connections()),
        (2, 2)
    );
    assert_eq!(
        simulator.base_url(),
        format!("http://{}/v1", simulator.address())
    );
}

#[test]
fn requests_may_come_in_any_pieces_and_all_at_once() {
    let simulator =
        Simulator::start(|request| Play::answer(200, &[], request.body.clone())).unwrap();
    let mut client = Connection::open(simulator.address());
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\na: b\r\n\r\n";
    for byte in chunked.bytes() {
        client.send([byte]);
    }
    assert_eq!(client.response().text(), "abcde");
    // The size of a chunk is hexadecimal.
    client.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n");
    assert_eq!(client.response().text(), "abcdefghijklmnopqrstuvwxyz");
    let plain = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nfgh";
    client.send([plain, chunked, plain].concat());
    assert_eq!(
        [(); 3].map(|()| client.response().body),
        [&b"fgh"[..], b"abcde", b"fgh"]
    );
}

#[test]
fn a_client_that_waits_to_send_its_body_gets_100_continue() {
    let simulator =
        Simulator::start(|request| Play::answer(200, &[], request.body.clone())).unwrap();
    let mut client = Connection::open(simulator.address());
    client.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_eq!(client.head().unwrap().status, 100);
    client.send("abc");
    assert_eq!(client.response().text(), "abc");
}

#[test]
fn malformed_request_is_rejected_and_connection_closed() {
    let simulator = Simulator::honest().unwrap();
    for wrong in [
        "HELO\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\nx: {}", "a".repeat(100 << 10)),
        "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n".to_owned(),
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n".to_owned(),
    ] {
        let mut client = Connection::open(simulator.address());
        client.send(wrong);
        let answer = client.response();
        assert_eq!(
            (answer.status, answer.header("connection")),
            (400, Some("close"))
        );
        assert_eq!(client.rest(), (Vec::new(), End::Closed));
    }
    assert_eq!(simulator.requests().len(), 0);
}

#[test]
fn requests_are_waited_for() {
    let simulator = Simulator::honest().unwrap();
    assert!(!simulator.wait_for_requests(1, Duration::ZERO));
    assert_eq!(simulator.wait_for_close(0, Duration::ZERO), None);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| simulator.wait_for_requests(2, GUARD));
        let mut client = Connection::open(simulator.address());
        client.send(GET);
        client.send(GET);
        assert!(waits.join().unwrap());
    });
}

/// A disconnect of the client is noticed in every phase of a reply.
#[test]
fn a_client_that_leaves_is_seen_in_every_phase() {
    let pause = Duration::from_secs(3_600);
    let phases: [(&str, Play); 6] = [
        ("before the head", Play::new().hold()),
        ("in a pause", Play::new().pause(pause).then(abc())),
        ("in the body", unended()),
        (
            "at a gate",
            Play::stream()
                .body("data: a\n\n")
                .gate()
                .body("data: b\n\n"),
        ),
        (
            "while it is written",
            Play::stream().forever(Play::new().body(vec![b'a'; 1 << 20])),
        ),
        ("after the end", abc()),
    ];
    for (phase, play) in phases {
        for is_rude in [false, true] {
            let played = play.clone();
            let simulator = Simulator::start(move |_| played.clone()).unwrap();
            let mut client = Connection::open(simulator.address());
            client.send(GET);
            assert!(simulator.wait_for_requests(1, GUARD), "{phase}");
            assert_eq!(simulator.wait_for_close(0, Duration::ZERO), None, "{phase}");
            assert_eq!(simulator.open_connections(), 1, "{phase}");
            match phase {
                // There are no bytes to leave unread.
                "before the head" | "in a pause" => drop(client),
                _ if is_rude => client.reset_unread(),
                _ => {
                    client.head().unwrap();
                    client.chunk().unwrap();
                    client.finish();
                    drop(client);
                }
            }
            let closed = simulator
                .wait_for_close(0, GUARD)
                .unwrap_or_else(|| panic!("{phase}"));
            assert!(closed >= simulator.requests()[0].at, "{phase}");
            assert_eq!(
                (simulator.connections(), simulator.open_connections()),
                (1, 0),
                "{phase}"
            );
        }
    }
}

#[test]
fn a_reset_and_a_close_are_distinct_and_end_the_connection() {
    for (play, end) in [
        (Play::new().reset(), End::Reset),
        (Play::new().close(), End::Closed),
    ] {
        let simulator = Simulator::start(move |_| play.clone()).unwrap();
        let mut client = Connection::open(simulator.address());
        client.send(GET);
        assert_eq!(client.head().err(), Some(end));
        drop(client);
        assert!(simulator.wait_for_close(0, GUARD).is_some());
    }
}

#[test]
fn a_gate_waits_for_its_release() {
    let passed = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&passed);
    let simulator = Simulator::start(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        Play::stream()
            .body("a")
            .gate()
            .body("b")
            .gate()
            .body("c")
            .step(sluicegate_simulator::Step::End)
    })
    .unwrap();
    // A release before the play is kept.
    simulator.release();
    let mut client = Connection::open(simulator.address());
    client.send(GET);
    client.head().unwrap();
    assert_eq!(
        [client.chunk(), client.chunk()],
        [Ok(b"a".to_vec()), Ok(b"b".to_vec())]
    );
    simulator.release();
    assert_eq!(
        [client.chunk(), client.chunk()],
        [Ok(b"c".to_vec()), Ok(Vec::new())]
    );
    simulator.release_all();
    client.send(GET);
    assert_eq!(client.response().body, b"abc");
    assert_eq!(passed.load(Ordering::SeqCst), 2);
}

#[test]
fn dropping_the_server_closes_its_connections() {
    let simulator = Simulator::start(|_| unended()).unwrap();
    let mut client = Connection::open(simulator.address());
    client.send(GET);
    client.head().unwrap();
    assert_eq!(client.chunk(), Ok(b"data: a\n\n".to_vec()));
    drop(simulator);
    let (rest, end) = client.rest();
    assert!(
        rest.ends_with(b"data: c\n\n\r\n") && end != End::Complete,
        "{end:?}"
    );
}

#[test]
fn hundreds_of_streams_are_open_at_once() {
    let simulator = Simulator::start(|_| unended()).unwrap();
    let mut clients: Vec<Connection> = (0..400)
        .map(|_| Connection::open(simulator.address()))
        .collect();
    clients.iter_mut().for_each(|client| client.send(GET));
    for client in &mut clients {
        client.head().unwrap();
        assert_eq!(
            [client.chunk(), client.chunk(), client.chunk()].map(Result::unwrap),
            [b"data: a\n\n", b"data: b\n\n", b"data: c\n\n"]
        );
    }
    assert_eq!(simulator.open_connections(), 400);
    drop(clients);
    assert!((0..400).all(|number| simulator.wait_for_close(number, GUARD).is_some()));
    assert_eq!(simulator.open_connections(), 0);
}
