//! L: the memory limit for request bodies is exact on every route and upstream protocol, and one
//! key cannot take the share of the others.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, Simulator, honest, scenario};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Request, TEXT, await_that};

use crate::GATEWAY;
use crate::gate::Gate;
use crate::roads::{Road, roads};

/// On every route request bodies may fill `body_memory` to the last byte; one byte more is refused
/// with 503 and `Retry-After: 1`, and the memory of a body is released when its request has been
/// answered.
#[test]
fn l06_bodies_may_fill_their_memory_on_every_road() {
    // The body of a request that waits for its upstream is still in memory.
    let gate = Gate::new("body_memory = \"64KiB\"\njson_body = \"64KiB\"\nedit_body = \"64KiB\"");
    for road in roads() {
        let hold = |length| gate.hold(&road.with(&road.body_of(length)));
        let held = vec![hold(HALF), hold(HALF)];
        is_shed(&gate, road, &road.request(false));
        gate.release(held);

        let held = vec![hold(HALF)];
        is_shed(&gate, road, &road.with(&road.body_of(HALF + 1)));
        gate.release(held);

        gate.release(vec![hold(HALF), hold(HALF - 1)]);
        gate.release(vec![hold(2 * HALF)]);
    }
}

/// Requests of one key that make the server fail or stall neither open its circuit breaker for other
/// keys, nor do uploads of that key that never end take all the memory for bodies: every request of
/// another key is answered.
#[test]
fn o07_one_tenant_cannot_shut_out_the_others() {
    let (first, second) = (
        Simulator::start(touchy).unwrap(),
        Simulator::honest().unwrap(),
    );
    let limits = "json_body = \"64KiB\"\nedit_body = \"64KiB\"\nbody_memory = \"128KiB\"";
    let gateway = Config::new(limits)
        .upstream(
            "first",
            Protocol::Chat,
            &first.base_url(),
            "head_timeout = \"500ms\"",
        )
        .upstream("second", Protocol::Chat, &second.base_url(), "")
        .model(
            "shared",
            Protocol::Chat,
            r#"[{ upstream = "first" }, { upstream = "second" }]"#,
        )
        .start(GATEWAY);
    // More than enough failures to open a circuit breaker that counts them.
    std::thread::scope(|scope| {
        for text in ["break", "stall"].into_iter().cycle().take(30) {
            let gateway = &gateway;
            scope.spawn(move || request(CLIENT_KEY, text, 0).send(gateway.address()));
        }
    });
    let _dripping = uploads_without_end(&gateway);
    for _ in 0..25 {
        let response = request(TEXT, "modest", 40_000).send(gateway.address());
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let modest = |simulator: &Simulator| {
        let requests = simulator.requests();
        let is_modest = |request: &&Asked| text(request).contains("modest");
        requests.iter().filter(is_modest).count()
    };
    assert_eq!((modest(&first), modest(&second)), (25, 0));
}

/// A server that fails with 500 or stalls if a request says so.
fn touchy(request: &Asked) -> Play {
    match text(request) {
        text if text.contains("break") => scenario::named("status-500").unwrap().play(request),
        text if text.contains("stall") => Play::new().hold(),
        _ => honest::answer(request),
    }
}

fn text(request: &Asked) -> String {
    String::from_utf8_lossy(&request.body).into_owned()
}

/// Sends all but the end of more bodies than there is memory for, and waits until those without
/// room are refused.
fn uploads_without_end(gateway: &Gateway) -> Vec<Connection> {
    let bytes = request(CLIENT_KEY, "drip", 40_000).bytes();
    let open = (0..4).map(|_| {
        let mut connection = Connection::open(gateway.address());
        connection.try_send(&bytes[..bytes.len() - 1]);
        connection
    });
    let open = open.collect();
    let shed = "sluicegate_requests_total{route=\"chat_completions\",status=\"503\"";
    await_that("one upload is left", || gateway.sum(shed) == 3.0);
    open
}

/// A request for a stream with this key and text, whose body has at least so many bytes.
fn request(key: &str, text: &str, length: usize) -> Request {
    let body: Value = json!({"model": "shared", "stream": true,
                             "messages": [{"role": "user", "content": text}]});
    let body = format!("{:length$}", body.to_string());
    Request::post_bytes("/v1/chat/completions", body.as_bytes()).bearer(key)
}

/// Asserts that a request is refused because no memory is left for its body.
#[track_caller]
fn is_shed(gate: &Gate, road: Road, request: &Request) {
    let response = gate.refuse(request);
    assert_eq!(
        road.refusal(&response),
        (503, road.code("service_unavailable", "overloaded_error")),
        "{road:?}"
    );
    assert_eq!(response.header("retry-after"), Some("1"), "{road:?}");
}

/// Half of the memory.
const HALF: usize = 32 << 10;
