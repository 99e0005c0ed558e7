//! Hedges: while the first target is slow, the request is sent to another one as well, and the answer
//! that starts first is taken.

use std::thread;

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, Simulator, honest};
use testkit::requests::{TEXT_PROTOCOLS, ask, path};
use testkit::upstreams::{GUARD, closed_port};
use testkit::usage::{count, edited};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Request, Response, await_that, log};

use crate::GATEWAY;

/// Every request may be hedged, after 10 ms.
const ALL: &str = "hedge = { after = \"10ms\", percent = 100 }";

/// A configuration whose model `mine` is at these servers in turn, named `a`, `b` and `c`, with a line
/// about its hedges.
fn config(limits: &str, upstream: Protocol, servers: &[&Simulator], hedge: &str) -> Config {
    let names = ["a", "b", "c"].into_iter().zip(servers);
    let config = names
        .clone()
        .fold(Config::new(limits), |config, (name, server)| {
            config.upstream(name, upstream, &server.base_url(), "")
        });
    let targets: Vec<_> = names
        .map(|(name, _)| format!("{{ upstream = \"{name}\" }}"))
        .collect();
    let targets = format!("[{}]\n{hedge}", targets.join(", "));
    config.model("mine", upstream, &targets)
}

/// A gateway in front of servers of Chat, whose requests are all hedged.
fn gateway(servers: &[&Simulator]) -> Gateway {
    config("", Protocol::Chat, servers, ALL).start(GATEWAY)
}

fn post(gateway: &Gateway, client: Protocol, stream: bool) -> Response {
    let body = ask(client, "mine", "Hello.", stream);
    gateway.post(CLIENT_KEY, path(client), &body)
}

/// Sends a plain request of Chat.
fn plain(gateway: &Gateway) -> Response {
    post(gateway, Protocol::Chat, false)
}

fn start(behave: impl Fn(&Asked) -> Play + Send + Sync + 'static) -> Simulator {
    Simulator::start(behave).unwrap()
}

/// Opens a stream without content, or does not respond.
fn hangs(request: &Asked) -> Play {
    if request.json()["stream"] != true {
        return Play::new().hold();
    }
    let answer = edited(request, count);
    let opening = answer.pieces().next().cloned().unwrap_or_default();
    Play::stream().body(opening).hold()
}

/// Answers after a release.
fn waits(request: &Asked) -> Play {
    Play::new().gate().then(honest::answer(request))
}

/// Sends a request, to which `fast` answers once it has also arrived at `slow`.
fn overtaken(
    slow: &Simulator,
    fast: &Simulator,
    send: impl FnOnce() -> Response + Send,
) -> Response {
    let number = slow.requests().len() + 1;
    thread::scope(|scope| {
        let response = scope.spawn(send);
        assert!(slow.wait_for_requests(number, GUARD));
        fast.release();
        response.join().unwrap()
    })
}

/// Breaks off after a release.
fn breaks(_: &Asked) -> Play {
    Play::new().gate().close()
}

/// The number of events of hedges of this kind.
fn hedges(gateway: &Gateway, event: &str) -> f64 {
    gateway.sum(&format!("sluicegate_hedges_total{{event=\"{event}\"}}"))
}

/// The target that has answered, and the target of the hedge, as the log has them.
fn targets(gateway: &Gateway, response: &Response) -> [Value; 2] {
    let line = log::line(gateway, response);
    ["target", "hedge"].map(|field| line[field].clone())
}

#[test]
fn a_slow_target_is_overtaken_in_each_protocol() {
    for upstream in TEXT_PROTOCOLS {
        let (slow, fast) = (start(hangs), start(waits));
        let gateway = config("", upstream, &[&slow, &fast], ALL).start(GATEWAY);
        let mut asked = 0;
        for client in TEXT_PROTOCOLS {
            for stream in [false, true] {
                let response = overtaken(&slow, &fast, || post(&gateway, client, stream));
                assert_eq!(response.status, 200, "{client:?} over {upstream:?}");
                assert!(response.text().contains(" said:"), "{}", response.text());
                assert!(slow.wait_for_close(asked, GUARD).is_some(), "cancelled");
                asked += 1;
                assert_eq!(
                    (slow.requests().len(), fast.requests().len()),
                    (asked, asked)
                );
                assert_eq!(targets(&gateway, &response), ["b", "b"]);
                let line = log::line(&gateway, &response);
                assert_eq!(line["outcome"], "completed");
            }
        }
        assert_eq!(
            (hedges(&gateway, "sent"), hedges(&gateway, "won")),
            (6.0, 6.0)
        );
    }
}

#[test]
fn the_first_target_may_still_answer_first() {
    for stream in [false, true] {
        let (first, second) = (start(waits), start(waits));
        let gateway = gateway(&[&first, &second]);
        thread::scope(|scope| {
            let response = scope.spawn(|| post(&gateway, Protocol::Chat, stream));
            assert!(second.wait_for_requests(1, GUARD));
            first.release();
            let response = response.join().unwrap();
            assert!(response.text().contains(" said:"), "{}", response.text());
            assert!(second.wait_for_close(0, GUARD).is_some(), "cancelled");
            assert_eq!(targets(&gateway, &response), ["a", "b"]);
        });
        assert_eq!(
            (hedges(&gateway, "sent"), hedges(&gateway, "won")),
            (1.0, 0.0)
        );
    }
}

/// The stream of Messages begins with the tokens of the prompt, 1,237 of them, so both targets have
/// reported them: <https://platform.claude.com/docs/en/build-with-claude/streaming>.
#[test]
fn the_usage_of_both_targets_is_counted() {
    let counts = |asked: &Asked| Play::new().gate().then(edited(asked, count));
    let (slow, fast) = (start(hangs), start(counts));
    let gateway = config("", Protocol::Messages, &[&slow, &fast], ALL).start(GATEWAY);
    let response = overtaken(&slow, &fast, || post(&gateway, Protocol::Messages, true));
    let line = log::line(&gateway, &response);
    assert_eq!(line["input_tokens"], 2474);
    // The cancelled one has reported 3 in its first event.
    assert_eq!(line["output_tokens"], 422);
}

#[test]
fn at_most_the_percentage_of_requests_is_hedged() {
    let (slow, fast) = (start(waits), Simulator::honest().unwrap());
    let hedge = "hedge = { after = \"10ms\", percent = 10 }";
    let limits = "concurrency_per_key = 200";
    let gateway = config(limits, Protocol::Chat, &[&slow, &fast], hedge).start(GATEWAY);
    thread::scope(|scope| {
        let requests: Vec<_> = (0..100).map(|_| scope.spawn(|| plain(&gateway))).collect();
        await_that("no request can be hedged any more", || {
            hedges(&gateway, "sent") + hedges(&gateway, "over_budget") == 100.0
        });
        slow.release_all();
        for request in requests {
            assert_eq!(request.join().unwrap().status, 200);
        }
    });
    assert_eq!(fast.requests().len(), 10);
    assert_eq!(hedges(&gateway, "over_budget"), 90.0);
}

/// A hedge needs a permit and a reservation of its own: it fits neither into a limit of one concurrent
/// request nor into a budget that pays for one.
#[test]
fn a_hedge_needs_room_in_all_limits() {
    let price = "[[prices]]\nmodel = \"*\"\ninput = \"0\"\noutput = \"8\"";
    // An answer of 1,000 tokens costs 0.008.
    let budget = "budget = { amount = \"0.01\", currency = \"USD\", window = \"month\" }";
    for (limits, quota) in [
        ("concurrency_per_key = 1", None),
        ("", Some("concurrency = 1")),
        ("", Some(budget)),
    ] {
        let folder = GATEWAY.file("note.txt", "The file of usage is beside this one.");
        let state = folder.0.with_file_name("accounting.db");
        let state = format!("[state]\naccounting = \"sqlite:{}\"", state.display());
        let (slow, fast) = (start(waits), Simulator::honest().unwrap());
        let mut config = config(limits, Protocol::Chat, &[&slow, &fast], ALL)
            .section(&state)
            .section(price);
        if let Some(quota) = quota {
            config = config.quota(quota);
        }
        let gateway = config.start(GATEWAY);
        let mut body = ask(Protocol::Chat, "mine", "Hello.", false);
        body["max_tokens"] = json!(1000);
        thread::scope(|scope| {
            let path = path(Protocol::Chat);
            let response = scope.spawn(|| gateway.post(CLIENT_KEY, path, &body));
            await_that("the limit has no room", || {
                hedges(&gateway, "limited") == 1.0
            });
            slow.release();
            let response = response.join().unwrap();
            assert_eq!(response.status, 200, "{}", response.text());
            assert_eq!(targets(&gateway, &response), [json!("a"), Value::Null]);
        });
        assert_eq!(fast.requests().len(), 0, "{limits:?} {quota:?}");
    }
}

#[test]
fn the_hedge_goes_on_after_a_failure_of_the_first_target() {
    let (first, second) = (start(breaks), start(waits));
    let gateway = gateway(&[&first, &second]);
    thread::scope(|scope| {
        let response = scope.spawn(|| plain(&gateway));
        assert!(second.wait_for_requests(1, GUARD));
        first.release();
        assert!(first.wait_for_close(0, GUARD).is_some());
        second.release();
        let response = response.join().unwrap();
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(targets(&gateway, &response), ["b", "b"]);
    });
}

#[test]
fn the_first_target_goes_on_after_a_failure_of_the_hedge() {
    let (first, second) = (start(waits), start(breaks));
    let gateway = gateway(&[&first, &second]);
    thread::scope(|scope| {
        let response = scope.spawn(|| plain(&gateway));
        assert!(second.wait_for_requests(1, GUARD));
        second.release();
        assert!(second.wait_for_close(0, GUARD).is_some());
        first.release();
        let response = response.join().unwrap();
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(targets(&gateway, &response), ["a", "b"]);
    });
}

#[test]
fn a_third_target_is_asked_after_the_failure_of_both() {
    for first_fails_first in [true, false] {
        let (first, second) = (start(breaks), start(breaks));
        let third = Simulator::honest().unwrap();
        let gateway = gateway(&[&first, &second, &third]);
        let mut order = [&first, &second];
        if !first_fails_first {
            order.reverse();
        }
        thread::scope(|scope| {
            let response = scope.spawn(|| plain(&gateway));
            assert!(second.wait_for_requests(1, GUARD));
            for server in order {
                assert_eq!(third.requests().len(), 0);
                server.release();
                assert!(server.wait_for_close(0, GUARD).is_some());
            }
            let response = response.join().unwrap();
            assert_eq!(response.status, 200, "{}", response.text());
            assert_eq!(targets(&gateway, &response), ["c", "b"]);
        });
        assert_eq!(third.requests().len(), 1);
    }
}

/// The hedge goes to the next target whose circuit breaker is closed: the breaker of a host without a server opens
/// after 20 attempts.
#[test]
fn a_hedge_passes_a_target_whose_circuit_breaker_is_open() {
    let (slow, fast, nobody) = (start(hangs), Simulator::honest().unwrap(), closed_port());
    let closed = format!("http://{}/v1", nobody.local_addr().unwrap());
    let all = r#"[{ upstream = "slow" }, { upstream = "closed" }, { upstream = "fast" }]"#;
    let gateway = Config::new("")
        .upstream("slow", Protocol::Chat, &slow.base_url(), "")
        .upstream("closed", Protocol::Chat, &closed, "")
        .upstream("fast", Protocol::Chat, &fast.base_url(), "")
        .model("closed", Protocol::Chat, r#"[{ upstream = "closed" }]"#)
        .model("mine", Protocol::Chat, &format!("{all}\n{ALL}"))
        .start(GATEWAY);
    for _ in 0..20 {
        let body = ask(Protocol::Chat, "closed", "Hello.", false);
        let response = gateway.post(CLIENT_KEY, path(Protocol::Chat), &body);
        assert_eq!(response.status, 502, "{}", response.text());
    }
    let failures = "sluicegate_upstream_failures_total{upstream=\"closed\"";
    assert_eq!(gateway.sum(failures), 20.0);
    let response = plain(&gateway);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(targets(&gateway, &response), ["fast", "fast"]);
    assert_eq!(gateway.sum(failures), 20.0, "it was not asked again");
}

/// A request that every target would refuse is not left to the other one.
#[test]
fn an_error_of_the_request_ends_both_attempts() {
    let error = json!({"error": {"message": "No.", "type": "invalid_request_error", "code": null}});
    let refuses = move |_: &Asked| Play::new().gate().then(Play::json(400, &error));
    let (slow, strict) = (start(hangs), start(refuses));
    let gateway = gateway(&[&slow, &strict]);
    let response = overtaken(&slow, &strict, || plain(&gateway));
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(slow.wait_for_close(0, GUARD).is_some(), "cancelled");
}

#[test]
fn a_client_that_leaves_cancels_both_attempts() {
    for stream in [false, true] {
        let (first, second) = (start(hangs), start(hangs));
        let gateway = gateway(&[&first, &second]);
        let body = ask(Protocol::Chat, "mine", "Hello.", stream);
        let request = Request::post(path(Protocol::Chat), &body).bearer(CLIENT_KEY);
        let mut connection = Connection::open(gateway.address());
        connection.send(request.bytes());
        assert!(first.wait_for_requests(1, GUARD) && second.wait_for_requests(1, GUARD));
        drop(connection);
        for server in [&first, &second] {
            assert!(server.wait_for_close(0, GUARD).is_some(), "cancelled");
        }
        await_that("all permits are released", || {
            gateway.metric("sluicegate_in_flight") == 0.0
        });
    }
}

/// A server that keeps responses, or goes on with them in the background, would have the request twice.
#[test]
fn only_configured_models_and_unkept_responses_are_hedged() {
    for line in ["", &format!("allow = [\"store\", \"background\"]\n{ALL}")] {
        let (slow, fast) = (start(waits), Simulator::honest().unwrap());
        let gateway = config("", Protocol::Responses, &[&slow, &fast], line).start(GATEWAY);
        thread::scope(|scope| {
            let response = scope.spawn(|| post(&gateway, Protocol::Responses, false));
            assert!(slow.wait_for_requests(1, GUARD));
            slow.release();
            let response = response.join().unwrap();
            assert_eq!(response.status, 200, "{}", response.text());
            assert_eq!(targets(&gateway, &response), [json!("a"), Value::Null]);
        });
        assert_eq!(fast.requests().len(), 0, "{line}");
    }
}
