//! L: slow clients.

use std::time::Duration;

use serde_json::json;
use simulator::Protocol;
use testkit::requests::ask;
use testkit::upstreams::now;
use testkit::{CLIENT_KEY, Connection, Gateway, Request, await_that};

use crate::GATEWAY;

/// The head of a request whose body has this media type and length.
fn head(path: &str, content_type: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {CLIENT_KEY}\r\n\
         content-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    )
}

fn ended(gateway: &Gateway, reason: &str) -> f64 {
    gateway.sum(&format!(
        "sluicegate_connections_ended_total{{reason=\"{reason}\"}}"
    ))
}

/// A connection on which nothing is sent is closed and counted.
#[test]
fn l01_nothing_is_sent() {
    let (gateway, _simulator) = GATEWAY.with_upstream("first_byte = \"200ms\"\n");
    let mut silent: Vec<_> = (0..20)
        .map(|_| Connection::open(gateway.address()))
        .collect();
    for raw in &mut silent {
        assert_eq!(raw.rest().0, b"");
    }
    await_that("all are counted", || {
        ended(&gateway, "no_first_byte") == 20.0
    });
    assert_eq!(gateway.metric("sluicegate_connections"), 0.0);
}

/// A head that arrives byte by byte does not extend the header timeout, and other clients are
/// served meanwhile.
#[test]
fn l02_a_head_without_end() {
    let (gateway, _simulator) = GATEWAY.with_upstream("head_timeout = \"500ms\"\n");
    std::thread::scope(|scope| {
        let drip = || {
            let mut raw = Connection::open(gateway.address());
            raw.try_send("GET /v1/models HTTP/1.1\r\nx-slow: ");
            assert_eq!(raw.drip(std::iter::repeat_n(b'x', 10_000)).text(), "");
        };
        let slow: Vec<_> = (0..100).map(|_| scope.spawn(drip)).collect();
        for _ in 0..5 {
            let served = gateway.ask(
                Protocol::Chat,
                &ask(Protocol::Chat, "chat", "Hello.", false),
            );
            assert_eq!(served.status, 200);
        }
        slow.into_iter().for_each(|slow| slow.join().unwrap());
    });
    await_that("all are counted", || ended(&gateway, "slow_head") == 100.0);
}

/// A connection that is kept may be idle for longer than a head may take, because a load balancer
/// in front keeps it for a minute.
#[test]
fn a_kept_connection_may_be_idle_longer_than_a_head() {
    let (gateway, _simulator) =
        GATEWAY.with_upstream("head_timeout = \"200ms\"\nidle_timeout = \"1500ms\"\n");
    let mut kept = Connection::open(gateway.address());
    for _ in 0..2 {
        kept.send(Request::get("/v1/models").bearer(CLIENT_KEY).bytes());
        assert_eq!(kept.response().status, 200);
    }
    let answered = now();
    assert!(kept.is_ended());
    assert!(answered.elapsed() > Duration::from_secs(1));
    await_that("it is counted", || ended(&gateway, "idle") == 1.0);

    // The head of a later request has its own time as well.
    let mut slow = Connection::open(gateway.address());
    slow.send(Request::get("/v1/models").bearer(CLIENT_KEY).bytes());
    assert_eq!(slow.response().status, 200);
    slow.send("GET /v1/models HTTP/1.1\r\nx-slow: ");
    let begun = now();
    assert!(slow.is_ended());
    assert!(begun.elapsed() < Duration::from_secs(1));
    await_that("it is counted", || ended(&gateway, "slow_head") == 1.0);
}

/// A body that stalls, or arrives below the minimum rate, is refused with 408 and the connection is
/// closed. It holds no permit.
#[test]
fn l03_a_body_without_end() {
    for limits in [
        "body_idle = \"300ms\"\n",
        "body_grace = \"300ms\"\nbody_rate = \"1MiB\"\n",
    ] {
        let (gateway, simulator) = GATEWAY.with_upstream(&format!("concurrency = 1\n{limits}"));
        let mut slow = Connection::open(gateway.address());
        slow.try_send(head("/v1/chat/completions", "application/json", 10_000));
        slow.try_send("{");
        let served = gateway.ask(
            Protocol::Chat,
            &ask(Protocol::Chat, "chat", "Hello.", false),
        );
        assert_eq!(served.status, 200, "the one permit is not taken");
        let received = if limits.contains("rate") {
            slow.drip(std::iter::repeat_n(b' ', 9_000))
        } else {
            slow.received_until_closed()
        };
        assert_eq!(received.statuses(), [408], "{limits}");
        assert!(
            received.has("\"request_timeout\"") && received.has("connection: close"),
            "{}",
            received.text()
        );
        assert_eq!(simulator.requests().len(), 1);
    }
}

/// A body that keeps the minimum rate may take longer in total than the idle timeout, which is long
/// enough here for a busy machine.
#[test]
fn l03_a_body_that_keeps_its_pace_is_read() {
    let (gateway, _simulator) =
        GATEWAY.with_upstream("body_idle = \"3s\"\nbody_grace = \"3s\"\nbody_rate = \"1\"\n");
    let body = ask(Protocol::Chat, "chat", "Hello.", false).to_string();
    // At 20 ms a byte or more, which is more than the idle timeout in all.
    let body = format!("{body:>200}");
    let mut raw = Connection::open(gateway.address());
    raw.try_send(
        head("/v1/chat/completions", "application/json", body.len())
            .replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"),
    );
    assert_eq!(
        raw.drip(body.bytes().chain(std::iter::repeat_n(b' ', 10_000)))
            .statuses(),
        [200]
    );
}

/// A form that arrives byte by byte is refused with 408, the connection is closed, and no upstream
/// request is sent.
#[test]
fn m11_a_form_without_end() {
    let (gateway, simulator) =
        GATEWAY.with_upstream("body_grace = \"300ms\"\nbody_rate = \"1MiB\"\n");
    let mut slow = Connection::open(gateway.address());
    slow.try_send(head(
        "/v1/images/edits",
        "multipart/form-data; boundary=b",
        10_000,
    ));
    slow.try_send("--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n");
    let received = slow.drip(std::iter::repeat_n(b'x', 9_000));
    assert_eq!(received.statuses(), [408]);
    assert!(
        received.has("\"request_timeout\"") && received.has("connection: close"),
        "{}",
        received.text()
    );
    assert_eq!(simulator.requests().len(), 0);
    assert_eq!(
        gateway
            .ask(
                Protocol::Images,
                &json!({"model": "images", "prompt": "A boat"})
            )
            .status,
        200
    );
}
