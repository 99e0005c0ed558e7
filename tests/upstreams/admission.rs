//! Requests that refer to kept answers: they are admitted before those answers are read, and their
//! memory is bounded.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, Simulator};
use testkit::requests::ask;
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Request, Response, await_that, changed};

use crate::GATEWAY;

const KEEP: &str = "[responses]\nkeep = \"60s\"\nkeep_bytes = \"64MiB\"\n";
/// The length of each output item, in bytes.
const ITEM: usize = 1 << 20;

/// A reply of Responses with so many long messages.
fn reply(items: usize) -> Value {
    let text = "a ".repeat(ITEM / 2);
    let item = |i| {
        let part = json!({"type": "output_text", "text": text, "annotations": []});
        json!({"type": "message", "id": format!("msg_{i}"), "role": "assistant",
            "status": "completed", "content": [part]})
    };
    json!({"id": "resp_long", "object": "response", "created_at": 1, "status": "completed",
        "model": "m", "output": (0..items).map(item).collect::<Vec<_>>(),
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}})
}

/// A gateway that has kept an answer of so many items, with its upstream.
fn gateway_with_kept(items: usize, limits: &str, sections: &str) -> (Gateway, Simulator) {
    let simulator = Simulator::start(move |_| Play::json(200, &reply(items))).unwrap();
    let gateway = Config::before(&simulator, limits, "")
        .section(KEEP)
        .section(sections)
        .start(GATEWAY);
    let question = changed(question(), &json!({"store": true}));
    let kept = gateway.ask(Protocol::Responses, &question);
    assert_eq!(kept.status, 200, "{}", kept.text());
    gateway.await_quiet();
    (gateway, simulator)
}

fn question() -> Value {
    ask(Protocol::Responses, "responses", "Hello.", false)
}

fn references(ids: impl IntoIterator<Item = usize>) -> Value {
    let items = ids.into_iter();
    items
        .map(|i| json!({"type": "item_reference", "id": format!("msg_{i}")}))
        .collect()
}

#[track_caller]
fn expect_refusal(response: &Response, status: u16, code: &str) {
    let code = json!(code);
    assert_eq!(
        (response.status, &response.json()["error"]["code"]),
        (status, &code),
        "{}",
        response.text()
    );
}

/// The most memory that a process has had so far, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory(gateway: &Gateway) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<usize>().unwrap() << 10
}

/// The items together are longer than a request may be: nothing is copied to find that out.
#[cfg(target_os = "linux")]
#[test]
fn references_are_measured_before_they_are_copied() {
    let (gateway, simulator) = gateway_with_kept(12, "json_body = \"8MiB\"", "");
    let before = peak_memory(&gateway);
    let previous = json!({"previous_response_id": "resp_long"});
    for change in [json!({"input": references(0..12)}), previous] {
        let response = gateway.ask(Protocol::Responses, &changed(question(), &change));
        expect_refusal(&response, 413, "request_too_large");
    }
    let more = peak_memory(&gateway) - before;
    assert!(more < 4 << 20, "{more} bytes more");
    assert_eq!(simulator.requests().len(), 1);
    let fitting = json!({"input": references(0..3)});
    let response = gateway.ask(Protocol::Responses, &changed(question(), &fitting));
    assert_eq!(response.status, 200, "{}", response.text());
}

/// The growth of a request is taken from the memory for bodies before any kept item is copied.
#[test]
fn references_count_against_the_memory_of_bodies() {
    let answered = |asked: &Asked| match asked.body.len() {
        ..ITEM => Play::json(200, &reply(3)),
        _ => Play::new().gate().then(Play::json(200, &reply(0))),
    };
    let simulator = Simulator::start(answered).unwrap();
    let limits = "json_body = \"8MiB\"\nedit_body = \"8MiB\"\nbody_memory = \"8MiB\"";
    let gateway = Config::before(&simulator, limits, "")
        .section(KEEP)
        .start(GATEWAY);
    let kept = changed(question(), &json!({"store": true}));
    assert_eq!(gateway.ask(Protocol::Responses, &kept).status, 200);
    gateway.await_quiet();
    let text = "a ".repeat(3 * ITEM);
    let long = ask(Protocol::Responses, "responses", &text, false);
    std::thread::scope(|scope| {
        let holding = scope.spawn(|| gateway.ask(Protocol::Responses, &long).status);
        assert!(simulator.wait_for_requests(2, testkit::GUARD));
        let change = json!({"input": references(0..3)});
        let response = gateway.ask(Protocol::Responses, &changed(question(), &change));
        assert_eq!(response.status, 503, "{}", response.text());
        assert_eq!(simulator.requests().len(), 2);
        simulator.release();
        assert_eq!(holding.join().unwrap(), 200);
    });
}

#[test]
fn an_item_is_referred_to_once() {
    let (gateway, simulator) = gateway_with_kept(2, "", "");
    let change = json!({"input": references([0, 1, 0])});
    let response = gateway.ask(Protocol::Responses, &changed(question(), &change));
    expect_refusal(&response, 400, "invalid_value");
    let message = "Duplicate item found with id 'msg_0'. Remove duplicate items from your input and \
                   try again.";
    assert_eq!(response.json()["error"]["message"], message);
    assert_eq!(simulator.requests().len(), 1);
}

/// A key over its quota gets nothing that is kept, neither as an answer nor within a request.
#[test]
fn kept_answers_need_a_permit() {
    let quota = "[[quotas]]\nkey = \"*\"\nrequests_per_minute = 1\n";
    let (gateway, simulator) = gateway_with_kept(1, "", quota);
    for (method, rest) in [("GET", ""), ("GET", "/input_items?limit=1"), ("DELETE", "")] {
        let request = Request::get(&format!("/v1/responses/resp_long{rest}")).method(method);
        let response = request.bearer(CLIENT_KEY).send(gateway.address());
        assert_eq!(response.status, 429, "{method} {rest}: {}", response.text());
        assert!(response.header("retry-after").is_some());
    }
    for refers in [
        json!({"previous_response_id": "resp_long"}),
        json!({"input": references(0..1)}),
    ] {
        let response = gateway.ask(Protocol::Responses, &changed(question(), &refers));
        assert_eq!(response.status, 429, "{}", response.text());
    }
    assert_eq!(simulator.requests().len(), 1);
}

/// The reserved prompt includes the kept items of the request: a MiB of text is 300,000 tokens.
#[test]
fn reservations_count_kept_items() {
    let quota = "[[quotas]]\nkey = \"*\"\ntokens_per_minute = 10000000\n";
    let (gateway, _simulator) = gateway_with_kept(1, "", quota);
    for (change, least) in [
        (json!({"input": references(0..1)}), 299_000),
        (json!({"previous_response_id": "resp_long"}), 299_000),
        (json!({}), 0),
    ] {
        let question = changed(question(), &json!({"store": false}));
        let response = gateway.ask(Protocol::Responses, &changed(question, &change));
        assert_eq!(response.status, 200);
        let left = response.header("x-ratelimit-remaining-tokens").unwrap();
        let reserved = 10_000_000 - left.parse::<i64>().unwrap();
        assert!((least..least + 3_000).contains(&reserved), "{reserved}");
        gateway.await_quiet();
    }
}

/// Clients that do not read share the bytes of an answer.
#[cfg(target_os = "linux")]
#[test]
fn readers_of_a_kept_answer_share_its_bytes() {
    let limits = "concurrency = 100\nconcurrency_per_key = 100";
    let (gateway, _simulator) = gateway_with_kept(8, limits, "");
    let before = peak_memory(&gateway);
    let readers: Vec<_> = (0..30)
        .map(|_| {
            let mut connection = Connection::open(gateway.address());
            let request = Request::get("/v1/responses/resp_long").bearer(CLIENT_KEY);
            connection.send(request.bytes());
            connection
        })
        .collect();
    await_that("all are answered", || {
        gateway.metric("sluicegate_in_flight") == 30.0
    });
    let more = peak_memory(&gateway) - before;
    assert!(
        more < 16 << 20,
        "{more} bytes more for {} readers",
        readers.len()
    );
}
