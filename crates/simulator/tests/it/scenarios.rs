//! Scenarios: each has exactly the effect that its description states.

mod coding;
mod decoding;
mod ending;
mod events;
mod http;
mod protocol;
mod random;

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::Value;
use sluicegate_simulator::{Protocol, Request, Simulator, honest, scenario};
use testkit::{Connection, End, GUARD, Response};

use crate::folds::fold;
use crate::samples::{PROTOCOLS, path, sample};

/// A request that selects a scenario, as the server received it, and the client that waits for the
/// reply.
struct Exchange {
    protocol: Protocol,
    request: Request,
    client: Connection,
    simulator: Simulator,
}

impl Exchange {
    fn new(scenario: &str, protocol: Protocol, stream: bool) -> Self {
        Self::of(
            protocol,
            &sample(protocol, scenario, "one two three four", stream),
        )
    }

    fn of(protocol: Protocol, body: &Value) -> Self {
        let simulator = Simulator::start(scenario::answer).unwrap();
        let mut client = Connection::open(simulator.address());
        client.post(path(protocol), body);
        assert!(simulator.wait_for_requests(1, GUARD));
        Self {
            protocol,
            request: simulator.requests().remove(0),
            client,
            simulator,
        }
    }

    fn response(&mut self) -> Response {
        self.client.response()
    }

    /// Folds the stream to its complete reply.
    fn fold(&mut self) -> Result<Value, String> {
        let answer = self.response();
        assert_eq!((answer.status, answer.end), (200, End::Complete));
        fold(self.protocol, &answer.body)
    }

    /// The body of the conforming reply to the same request.
    fn honest_body(&self) -> Vec<u8> {
        honest::answer(&self.request).body_bytes()
    }

    /// The events of the conforming reply to the same request.
    fn honest_events(&self) -> Vec<Bytes> {
        honest::answer(&self.request).pieces().cloned().collect()
    }

    /// Folds the conforming stream to its complete reply.
    fn honest_fold(&self) -> Value {
        fold(self.protocol, &self.honest_body()).unwrap()
    }

    /// Reads raw bytes.
    fn response_bytes(&mut self, length: usize) -> Vec<u8> {
        self.client.bytes(length)
    }

    fn honest_text(&self) -> String {
        String::from_utf8(self.honest_body()).unwrap()
    }

    /// Sends the same request again on the same connection.
    fn again(&mut self) {
        let (path, body) = (self.request.path.clone(), self.request.json());
        self.client.post(&path, &body);
    }
}

/// The stream of a scenario in a protocol.
fn stream(scenario: &str, protocol: Protocol) -> Exchange {
    Exchange::new(scenario, protocol, true)
}

/// The plain reply of a scenario in a protocol.
fn plain(scenario: &str, protocol: Protocol) -> Exchange {
    Exchange::new(scenario, protocol, false)
}

#[test]
fn every_scenario_has_a_name_of_its_own_by_which_it_is_found() {
    let mut names = HashSet::new();
    for scenario in scenario::all().iter().chain(scenario::models()) {
        assert!(names.insert(scenario.template), "{scenario:?}");
        assert_eq!(
            scenario::named(&scenario.name()).unwrap().name(),
            scenario.name()
        );
        assert!(!scenario.about.is_empty());
        let is_row = |row: &&str| row.starts_with(['S', 'U']) && row[1..].parse::<u8>().is_ok();
        assert!(scenario.rows.iter().all(is_row), "{scenario:?}");
    }
}

#[test]
fn numbers_in_names_are_read() {
    let name = |name: &str| scenario::named(name).map(|scenario| scenario.name());
    assert_eq!(name("reset-at-7").as_deref(), Some("reset-at-7"));
    assert_eq!(name("reset-at").as_deref(), Some("reset-at-200"));
    assert_eq!(name("drip").as_deref(), Some("drip-50"));
    assert_eq!(
        name("status-429-retry-7").as_deref(),
        Some("status-429-retry-7")
    );
    assert_eq!(name("status-503").as_deref(), Some("status-503"));
    for unknown in [
        "",
        "reset",
        "reset-at-",
        "reset-at-x",
        "reset-at-1-2",
        "reset-at--1",
        "model-5.5",
    ] {
        assert_eq!(name(unknown), None, "{unknown}");
    }
}

#[test]
fn every_scenario_has_a_test() {
    let tests = [
        include_str!("scenarios/coding.rs"),
        include_str!("scenarios/decoding.rs"),
        include_str!("scenarios/random.rs"),
        include_str!("scenarios/ending.rs"),
        include_str!("scenarios/events.rs"),
        include_str!("scenarios/http.rs"),
        include_str!("scenarios/protocol.rs"),
    ];
    for scenario in scenario::all().iter().chain(scenario::models()) {
        let name = scenario.template.split("-N").next().unwrap();
        assert!(
            tests.iter().any(|test| test.contains(&format!("\"{name}"))),
            "{scenario:?}"
        );
    }
}

/// Rows about the behaviour of a complete server, or about the network between servers, are not
/// covered by scenarios.
#[test]
fn every_fault_that_a_server_can_have_is_shown() {
    let shown: HashSet<_> = scenario::all()
        .iter()
        .flat_map(|scenario| scenario.rows)
        .copied()
        .collect();
    let streams = (1..=15)
        .filter(|row| *row != 12)
        .map(|row| format!("S{row}"));
    let upstreams = (5..=22).map(|row| format!("U{row}"));
    let missing: Vec<_> = streams
        .chain(upstreams)
        .filter(|row| !shown.contains(row.as_str()))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn a_scenario_of_streams_answers_other_requests_honestly() {
    for scenario in [
        "malformed-event",
        "failed-first",
        "empty-stream",
        "endless-comments",
        "hold-after-end",
        "sse-cr",
    ] {
        for protocol in PROTOCOLS {
            let mut exchange = plain(scenario, protocol);
            assert_eq!(
                exchange.response().body,
                exchange.honest_body(),
                "{scenario} {protocol:?}"
            );
        }
    }
}

#[test]
fn scenarios_are_honest_about_the_list_of_models() {
    let simulator = Simulator::start(scenario::answer).unwrap();
    let mut client = Connection::open(simulator.address());
    client.send("GET /v1/models HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().json()["object"], "list");
}
