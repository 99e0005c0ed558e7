//! Quotas: limits of requests and tokens, for keys and models.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator, honest};
use testkit::errors::ERRORS;
use testkit::requests::{TEXT_PROTOCOLS, ask, protocol_name};
use testkit::{Config, Gateway, Response, await_that};

use crate::GATEWAY;

/// A gateway in front of a simulator, with one quota.
fn with_quota(lines: &str) -> (Gateway, Simulator) {
    let simulator = Simulator::start(honest::answer).unwrap();
    let config = Config::before(&simulator, "", "").quota(lines);
    (config.start(GATEWAY), simulator)
}

/// Sends a request in a protocol, which is relayed.
fn send(gateway: &Gateway, protocol: Protocol, stream: bool) -> Response {
    gateway.ask(
        protocol,
        &ask(protocol, protocol_name(protocol), "Hello.", stream),
    )
}

/// The name of a protocol's header for the rest of a quota.
fn remaining(protocol: Protocol, unit: &str) -> String {
    match protocol {
        Protocol::Messages => format!("anthropic-ratelimit-{unit}-remaining"),
        _ => format!("x-ratelimit-remaining-{unit}"),
    }
}

/// Responses within the quota report the rest of it, and one more request is refused with 429 before
/// any model is asked, plain and streamed, in the shape of each protocol.
#[test]
fn requests_over_the_quota_are_refused_in_their_protocol() {
    for protocol in TEXT_PROTOCOLS {
        let (gateway, simulator) = with_quota("requests_per_minute = 2");
        for left in ["1", "0"] {
            let response = send(&gateway, protocol, false);
            assert_eq!(response.status, 200, "{}", response.text());
            assert_eq!(
                response.header(&remaining(protocol, "requests")),
                Some(left)
            );
        }
        let refused = send(&gateway, protocol, false);
        assert_eq!(refused.status, 429, "{}", refused.text());
        let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=30).contains(&seconds), "{seconds}");
        let left = refused.header(&remaining(protocol, "requests"));
        assert_eq!(left, Some("0"));
        let error = &refused.json()["error"];
        let class = &ERRORS["limit_of_requests"];
        let owed = class.response(protocol).unwrap();
        assert_eq!(error["type"], *owed.kind);
        assert!(owed.says(error["message"].as_str().unwrap()), "{error}");
        assert_eq!(error["code"].as_str(), owed.code.as_deref());
        let streamed = send(&gateway, protocol, true);
        if protocol == Protocol::Responses {
            assert_eq!(streamed.status, 200);
            let text = streamed.text();
            assert!(text.contains("event: response.failed"), "{text}");
            assert!(text.contains(r#""code":"rate_limit_exceeded""#), "{text}");
        } else {
            assert_eq!(streamed.status, 429);
        }
        assert_eq!(simulator.requests().len(), 2);
        let refusals =
            "sluicegate_limit_refusals_total{limit=\"all keys\",dimension=\"requests_per_minute\"}";
        assert_eq!(gateway.metric(refusals), 2.0);
    }
}

/// The tokens that a request has used are counted when it has ended: the usage that its model
/// reports, whatever was reserved for it.
#[test]
fn tokens_are_counted_by_the_usage_of_the_model() {
    let (gateway, _simulator) = with_quota("tokens_per_minute = 60000");
    let used = |response: &Response| {
        let usage: Value = response.json()["usage"].clone();
        usage["total_tokens"].as_u64().unwrap()
    };
    let level = |response: &Response| -> u64 {
        let left = response.header("x-ratelimit-remaining-tokens").unwrap();
        left.parse().unwrap()
    };
    let first = send(&gateway, Protocol::Chat, false);
    let second = send(&gateway, Protocol::Chat, false);
    // The header is of the time before the answer, when some tokens are reserved: a prompt of less
    // than 100, and an answer of 1,000 for the first request, and of the length of the first answer
    // for the second one. A thousand tokens come back each second.
    assert!(
        (58_900..=59_000).contains(&level(&first)),
        "{}",
        level(&first)
    );
    assert!(
        level(&second) > 60_000 - used(&first) - 200,
        "{}",
        level(&second)
    );
    assert!(level(&second) <= 60_000);
}

/// A client that leaves a stream has used the tokens that were sent to it; its place comes back.
#[test]
fn a_stream_that_its_client_leaves_gives_its_place_back() {
    let (gateway, _simulator) = with_quota("concurrency = 1\ntokens_per_minute = 1000000");
    for _ in 0..3 {
        let mut connection = testkit::Connection::open(gateway.address());
        let body = ask(Protocol::Chat, "chat", "count to 60", true);
        connection.send(testkit::requests::request(Protocol::Chat, &body).bytes());
        connection.head().unwrap();
        connection.chunk().unwrap();
        drop(connection);
        await_that("the permit is back", || {
            send(&gateway, Protocol::Chat, false).status == 200
        });
    }
}

/// A quota for some keys and models leaves all others alone, and a reload keeps the used amounts.
#[test]
fn a_quota_is_for_its_keys_and_models_and_survives_a_reload() {
    let quota = "key = \"t*\"\nmodels = [\"chat\"]\nrequests_per_minute = 1";
    let (gateway, _simulator) = with_quota(quota);
    assert_eq!(send(&gateway, Protocol::Chat, false).status, 200);
    assert_eq!(send(&gateway, Protocol::Chat, false).status, 429);
    let other = send(&gateway, Protocol::Messages, false);
    assert_eq!(other.status, 200);
    assert_eq!(other.header("anthropic-ratelimit-requests-limit"), None);
    let path = gateway.config_path();
    let text = std::fs::read_to_string(path).unwrap();
    let changed = text.replace("requests_per_minute = 1", "requests_per_minute = 2");
    std::fs::write(path, &changed).unwrap();
    gateway.signal("HUP");
    let reloads = "sluicegate_config_reloads_total{outcome=\"taken\"}";
    await_that("the quota is reloaded", || gateway.sum(reloads) >= 1.0);
    let response = gateway.ask(Protocol::Chat, &json!({"model": "chat", "messages": []}));
    assert_eq!(response.status, 400, "a refused request uses nothing");
    // Use before the reload still counts: one of two requests is left, and half a minute passes until
    // the next one.
    assert_eq!(send(&gateway, Protocol::Chat, false).status, 200);
    assert_eq!(send(&gateway, Protocol::Chat, false).status, 429);
}

/// A request waits in the queue of its quota for one in progress, and is answered once that has ended.
#[test]
fn a_request_waits_in_the_queue_of_its_quota() {
    let gated = |request: &Request| Play::new().gate().then(honest::answer(request));
    let simulator = Simulator::start(gated).unwrap();
    let quota = "concurrency = 1\nqueue = { wait = \"60s\", depth = 1 }";
    let gateway = Config::before(&simulator, "", "")
        .quota(quota)
        .start(GATEWAY);
    std::thread::scope(|scope| {
        let send = || send(&gateway, Protocol::Chat, false);
        let first = scope.spawn(send);
        await_that("a request is in progress", || {
            simulator.requests().len() == 1
        });
        let second = scope.spawn(send);
        await_that("a request waits", || {
            gateway.metric("sluicegate_queued") == 1.0
        });
        let third = send();
        assert_eq!(third.status, 429, "the queue is full");
        assert_eq!(simulator.requests().len(), 1);
        simulator.release();
        assert_eq!(first.join().unwrap().status, 200);
        await_that("the second request is in progress", || {
            simulator.requests().len() == 2
        });
        simulator.release();
        assert_eq!(second.join().unwrap().status, 200);
    });
    assert_eq!(gateway.metric("sluicegate_queued"), 0.0);
    assert_eq!(
        gateway.metric("sluicegate_queue_duration_seconds_count"),
        2.0
    );
}
