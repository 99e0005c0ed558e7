//! Models with several upstream targets: their order, retries, fallbacks and the circuit breaker.

use std::collections::BTreeMap;

use grammar::Judged as _;
use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator, honest, scenario};
use testkit::requests::{PROTOCOLS, TEXT_PROTOCOLS, protocol_name};
use testkit::upstreams::{FaultTest, HASTY, Lane, PATIENT, assert_closed};
use testkit::{Config, Gateway, await_that};
use wire::ErrorKind;

use super::at_once;
use crate::GATEWAY;

const RELAY: Lane = Lane {
    client: Protocol::Chat,
    upstream: Protocol::Chat,
};
const ACROSS: Lane = Lane {
    client: Protocol::Messages,
    upstream: Protocol::Chat,
};

#[test]
fn targets_are_asked_in_order() {
    for lane in [RELAY, ACROSS] {
        for stream in [true, false] {
            for fault in [
                "close-before-head",
                "status-500",
                "status-401",
                "status-429",
                "html-200",
                "unknown-coding",
            ] {
                let (first, second) = (play(fault), Simulator::honest().unwrap());
                let test = two(&first, second, "", PATIENT);
                test.ask(lane, stream).is_whole();
                assert_eq!(
                    test.simulator.requests().len(),
                    1,
                    "{fault}: the second got a request"
                );
                assert!(!first.requests().is_empty());
                test.end();
            }
        }
    }
}

/// A request is sent once more to its first target, and not to those after it.
#[test]
fn only_the_first_target_is_asked_again() {
    for lane in [RELAY, ACROSS] {
        let first = play("status-500");
        let test = two(&first, play("status-500"), "", PATIENT);
        test.ask(lane, false).is_bad_gateway();
        assert_eq!(first.requests().len(), 2);
        assert_eq!(test.simulator.requests().len(), 1);
        test.end();
    }
}

#[test]
fn a_wrong_request_is_not_tried_elsewhere() {
    for fault in ["status-400", "status-422"] {
        let (first, second) = (play(fault), Simulator::honest().unwrap());
        let test = two(&first, second, "", PATIENT);
        let got = test.ask(RELAY, true);
        assert_eq!(got.response.status, 400, "{}", got.response.text());
        assert_eq!(test.simulator.requests().len(), 0, "{fault}");
        test.end();
    }
}

/// A target that takes all the time of a request leaves none for the next one, not even over an
/// open connection.
#[test]
fn no_target_is_asked_after_the_deadline() {
    let first = Simulator::start(|request| {
        let is_refused = String::from_utf8_lossy(&request.body).contains("Refuse this.");
        if is_refused {
            Play::json(
                401,
                &json!({"error": {"message": "No.", "type": "authentication_error"}}),
            )
        } else {
            Play::new().hold()
        }
    })
    .unwrap();
    let limits = "request_timeout = \"1s\"";
    let test = two(&first, Simulator::honest().unwrap(), limits, PATIENT);
    test.ask_with(RELAY, false, "Refuse this.").is_whole();
    test.ask_with(RELAY, false, "Hello.").is_late();
    assert_eq!(
        test.simulator.requests().len(),
        1,
        "the second target got the request that had expired"
    );
    test.end();
}

/// A target with a window that is known to be as small would refuse the prompt as well. The window of
/// the first one is known from the facts, or from its refusal.
#[test]
fn a_prompt_too_long_is_not_sent_to_a_smaller_window() {
    let first = Simulator::start(|_: &Request| too_long_for(8192)).unwrap();
    let known = |name: &str, window: u32| format!("[facts.{name}]\nmax_input_tokens = {window}\n");
    for (facts, asked) in [
        (known("one", 8192) + &known("two", 8192), false),
        (known("one", 16_384) + &known("two", 16_384), false),
        (known("two", 4096), false),
        (known("one", 8192) + &known("two", 8193), true),
        (known("two", 16_384), true),
        (known("one", 8192), true),
    ] {
        let second = Simulator::honest().unwrap();
        let targets =
            r#"[{ upstream = "one", model = "one" }, { upstream = "two", model = "two" }]"#;
        let gateway = Config::new("")
            .section(&facts)
            .upstream("one", Protocol::Chat, &first.base_url(), "")
            .upstream("two", Protocol::Chat, &second.base_url(), "")
            .model("chat", Protocol::Chat, targets)
            .start(GATEWAY);
        let test = FaultTest::of(gateway, second);
        for lane in [RELAY, ACROSS] {
            for stream in [true, false] {
                let got = test.ask(lane, stream).response;
                assert_eq!(got.status, if asked { 200 } else { 400 }, "{facts}");
            }
        }
        let expected = if asked { 4 } else { 0 };
        assert_eq!(test.simulator.requests().len(), expected, "{facts}");
        test.end();
    }
}

/// A context-length refusal of one target may go on to the next one, whose model may take more; if
/// it was the last one, the client gets it.
#[test]
fn a_prompt_too_long_for_one_target_goes_to_the_next() {
    let too_long = |_: &Request| too_long_for(8192);
    let first = Simulator::start(too_long).unwrap();
    let test = two(&first, Simulator::honest().unwrap(), "", PATIENT);
    for lane in [RELAY, ACROSS] {
        test.ask(lane, true).is_whole();
        test.ask(lane, false).is_whole();
    }
    assert_eq!(first.requests().len(), 4);
    test.end();
    let test = two(&first, Simulator::start(too_long).unwrap(), "", PATIENT);
    let got = test.ask(RELAY, false);
    assert_eq!(got.response.status, 400, "{}", got.response.text());
    assert_eq!(
        got.response.json()["error"]["code"],
        "context_length_exceeded"
    );
    test.end();
}

#[test]
fn inexpressible_request_falls_back_to_the_next_target() {
    let (first, second) = (Simulator::honest().unwrap(), Simulator::honest().unwrap());
    let targets =
        r#"[{ upstream = "messages" }, { upstream = "responses" }, { upstream = "chat" }]"#;
    let gateway = Config::new("")
        .upstream("messages", Protocol::Messages, &first.base_url(), "")
        .upstream("responses", Protocol::Responses, &first.base_url(), "")
        .upstream("chat", Protocol::Chat, &second.base_url(), "")
        .model("chat", Protocol::Chat, targets)
        .model(
            "told",
            Protocol::Chat,
            r#"[{ upstream = "messages" }, { upstream = "chat" }]"#,
        )
        .start(GATEWAY);
    // Audio cannot be expressed in the neutral event model, log probabilities cannot in Messages.
    let audio = json!({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}});
    let spoken = json!([{"role": "user", "content": [audio]}]);
    let plain = json!([{"role": "user", "content": "Hello."}]);
    for body in [
        json!({"model": "chat", "messages": spoken}),
        json!({"model": "told", "messages": plain, "logprobs": true}),
    ] {
        let response = gateway.ask(Protocol::Chat, &body);
        assert_eq!(response.status, 200, "{}", response.text());
    }
    assert_eq!((first.requests().len(), second.requests().len()), (0, 2));
    assert_eq!(
        gateway.sum("sluicegate_upstream_failures_total"),
        0.0,
        "no upstream request failed"
    );
}

#[test]
fn stream_failing_before_its_first_content_falls_back() {
    for lane in [RELAY, ACROSS] {
        for fault in [
            "failed-first",
            "limited-first",
            "empty-stream",
            "reset-at-10",
            "reset-after-1",
            "error-for-stream",
        ] {
            let (first, second) = (play(fault), Simulator::honest().unwrap());
            let test = two(&first, second, "", PATIENT);
            test.ask(lane, true).is_whole();
            assert_eq!(test.simulator.requests().len(), 1, "{fault}");
            test.end();
        }
    }
}

/// In each protocol the next target answers if a stream fails behind the events that open it, and
/// nothing of the first one reaches the client. `Responses` opens with two events, `Messages` with
/// the start of a message and of a block.
#[test]
fn u14_the_next_target_answers_before_any_content() {
    at_once(PROTOCOLS, |protocol| {
        let lane = Lane {
            client: protocol,
            upstream: protocol,
        };
        let opened: &[&str] = match protocol {
            Protocol::Responses | Protocol::Messages => &["reset-after-1", "reset-after-2"],
            Protocol::Chat => &["reset-after-1"],
            Protocol::Images => &[],
        };
        for fault in ["failed-first", "limited-first"].iter().chain(opened) {
            let (first, second) = (play(fault), Simulator::honest().unwrap());
            let test = two_of(protocol, &first, second, "", PATIENT);
            test.ask(lane, true).is_whole();
            assert_eq!(test.simulator.requests().len(), 1, "{protocol:?}: {fault}");
            test.end();
        }
    });
}

/// A client that has waited for the content of a target that stalls gets keep-alives, and then the
/// answer of the next target.
#[test]
fn u14_keep_alives_before_content_are_continued() {
    at_once(TEXT_PROTOCOLS, |protocol| {
        let lane = Lane {
            client: protocol,
            upstream: protocol,
        };
        let (first, second) = (play("stall-after-1"), Simulator::honest().unwrap());
        let test = two_of(protocol, &first, second, "keep_alive = \"50ms\"", HASTY);
        let got = test.ask(lane, true);
        got.is_whole();
        assert!(
            got.response.text().starts_with(": keep-alive\n\n"),
            "{}",
            got.response.text()
        );
        test.end();
    });
}

#[test]
fn a_stream_that_fails_later_is_not() {
    for lane in [RELAY, ACROSS] {
        let (first, second) = (play("reset-after-3"), Simulator::honest().unwrap());
        let test = two(&first, second, "", PATIENT);
        test.ask(lane, true).fails();
        assert_eq!(test.simulator.requests().len(), 0);
        test.end();
    }
}

#[test]
fn all_fail_and_the_client_gets_the_last_failure() {
    let (first, second) = (play("status-429-retry-7"), play("status-500"));
    let test = two(&first, second, "", PATIENT);
    for lane in [RELAY, ACROSS] {
        test.ask(lane, true).is_bad_gateway();
        test.ask(lane, false).is_bad_gateway();
    }
    test.end();
}

#[test]
fn keep_alives_do_not_end_the_failover() {
    // The stream starts after a silence; then the first target fails, and the second one answers.
    at_once([RELAY, ACROSS], |lane| {
        let (first, second) = (play("stall-head"), Simulator::honest().unwrap());
        let test = two(&first, second, "keep_alive = \"50ms\"", HASTY);
        let got = test.ask(lane, true);
        got.is_whole();
        assert!(
            got.response.text().starts_with(": keep-alive\n\n"),
            "{}",
            got.response.text()
        );
        assert_eq!(test.simulator.requests().len(), 1);
        assert_closed(&first, 0);
        test.end();
    });
}

#[test]
fn all_fail_after_keep_alives_and_one_failure_is_sent() {
    at_once([RELAY, ACROSS], |lane| {
        let test = two(
            &play("stall-head"),
            play("stall-head"),
            "keep_alive = \"50ms\"",
            HASTY,
        );
        let got = test.ask(lane, true);
        got.fails();
        assert!(
            got.response.text().starts_with(": keep-alive\n\n"),
            "{}",
            got.response.text()
        );
        test.all_closed();
        test.end();
    });
}

#[test]
fn weights_share_the_requests() {
    let simulator = Simulator::honest().unwrap();
    let targets = r#"[
        { upstream = "chat", model = "often", weight = 9 },
        { upstream = "chat", model = "seldom", weight = 1 },
        { upstream = "chat", model = "never", weight = 0 },
    ]"#;
    let plan = Config::new("").upstream("chat", Protocol::Chat, &simulator.base_url(), "");
    let test = FaultTest::of(
        plan.model("chat", Protocol::Chat, targets).start(GATEWAY),
        simulator,
    );
    for number in 0..200 {
        test.ask_with(RELAY, false, &format!("Conversation {number}."))
            .is_whole();
    }
    let mut counts = BTreeMap::<String, usize>::new();
    for request in test.simulator.requests() {
        *counts.entry(request.model()).or_default() += 1;
    }
    // A fair draw would be outside of these bounds once in many millions of sets of conversations.
    assert!(
        counts["often"] > 140 && counts.get("seldom").is_some_and(|count| *count > 0),
        "{counts:?}"
    );
    assert_eq!(counts.get("never"), None, "{counts:?}");
    test.end();
}

#[test]
fn the_fallback_url_is_asked_when_the_first_fails() {
    for fault in ["status-503", "status-500"] {
        let first = play(fault);
        let test = fallback(&first);
        for lane in [RELAY, ACROSS] {
            test.ask(lane, true).is_whole();
            test.ask(lane, false).is_whole();
        }
        assert_eq!(
            (first.requests().len(), test.simulator.requests().len()),
            (4, 4),
            "{fault}"
        );
        test.end();
    }
}

#[test]
fn a_retry_waits_as_retry_after_says_but_not_for_long() {
    // A delay of a second is waited for, a longer one is passed on to the client.
    let answer = |seconds: u32| {
        move |request: &Request| match request.number {
            0 => scenario::named(&format!("status-503-retry-{seconds}"))
                .unwrap()
                .play(request),
            _ => honest::answer(request),
        }
    };
    let test = FaultTest::playing(GATEWAY, answer(1), "", PATIENT);
    test.ask(RELAY, true).is_whole();
    let times: Vec<_> = test
        .simulator
        .requests()
        .iter()
        .map(|request| request.at)
        .collect();
    assert!((times[1] - times[0]).as_millis() >= 1_000);
    test.end();
    let test = FaultTest::playing(GATEWAY, answer(20), "", PATIENT);
    let got = test.ask(RELAY, true);
    got.is_refused(ErrorKind::Overloaded, "service_unavailable");
    assert_eq!(got.response.header("retry-after"), Some("20"));
    assert_eq!(test.simulator.requests().len(), 1);
    test.end();
}

/// The circuit breaker never opens when there is nowhere else to go: an only target is asked
/// however often it has failed, and so are all targets if each of them has.
#[test]
fn breaker_stays_closed_without_another_target() {
    let test = FaultTest::named(GATEWAY, "close-before-head", PATIENT);
    for _ in 0..30 {
        test.ask(RELAY, true).is_bad_gateway();
    }
    assert_eq!(test.simulator.requests().len(), 30);
    test.end();
    let first = play("close-before-head");
    let test = two(&first, play("close-before-head"), "", PATIENT);
    for _ in 0..30 {
        test.ask(RELAY, true).is_bad_gateway();
    }
    assert_eq!(
        (first.requests().len(), test.simulator.requests().len()),
        (30, 30)
    );
    test.end();
}

/// The breaker belongs to the upstream: one that is left alone by a model with an alternative is
/// asked for a model that has none.
#[test]
fn one_that_is_left_alone_is_asked_for_a_model_without_another() {
    let (first, second) = (play("close-before-head"), Simulator::honest().unwrap());
    let gateway = Config::new("")
        .upstream("one", Protocol::Chat, &first.base_url(), PATIENT)
        .upstream("two", Protocol::Chat, &second.base_url(), PATIENT)
        .model(
            "both",
            Protocol::Chat,
            r#"[{ upstream = "one" }, { upstream = "two" }]"#,
        )
        .model("only", Protocol::Chat, r#"[{ upstream = "one" }]"#)
        .start(GATEWAY);
    let status = |model: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "Hello."}]});
        gateway.ask(Protocol::Chat, &body).status
    };
    assert_eq!([(); 25].map(|()| status("both")), [200; 25]);
    assert_eq!(first.requests().len(), 20);
    assert_eq!([status("only"), status("both")], [502, 200]);
    assert_eq!(first.requests().len(), 21);
}

#[test]
fn one_that_is_left_alone_does_not_hold_up_the_next() {
    let first = play("close-before-head");
    let test = two(&first, Simulator::honest().unwrap(), "", PATIENT);
    for _ in 0..25 {
        test.ask(RELAY, true).is_whole();
    }
    assert_eq!(
        (first.requests().len(), test.simulator.requests().len()),
        (20, 25)
    );
    test.end();
}

#[test]
fn a_client_that_leaves_ends_the_search() {
    // The client disconnects during the request to the first target: no request is sent to the
    // second.
    let first = play("stall-head");
    let test = two(&first, Simulator::honest().unwrap(), "", PATIENT);
    let connection = test.open(RELAY, true);
    await_that("the first gets a request", || first.requests().len() == 1);
    drop(connection);
    assert_closed(&first, 0);
    test.gateway.await_quiet();
    assert_eq!(test.simulator.requests().len(), 0);
    test.end();
}

#[test]
fn each_target_is_asked_for_its_own_name_of_the_model() {
    let (first, second) = (play("close-before-head"), Simulator::honest().unwrap());
    let test = two(&first, second, "", PATIENT);
    let got = test.ask(RELAY, false);
    let reply: Value = serde_json::from_str(got.response.text()).unwrap();
    assert_eq!(
        reply["model"], "chat",
        "the client sees the name that it used"
    );
    assert_eq!(
        (
            first.requests()[0].model(),
            test.simulator.requests()[0].model()
        ),
        ("one".into(), "two".into())
    );
    test.end();
}

fn play(name: &str) -> Simulator {
    let scenario = scenario::named(name).unwrap_or_else(|| panic!("no scenario {name}"));
    Simulator::start(move |request| -> Play { scenario.play(request) }).unwrap()
}

/// A model `chat` with two targets; the test's simulator is the second.
fn two(first: &Simulator, second: Simulator, limits: &str, settings: &str) -> FaultTest {
    two_of(Protocol::Chat, first, second, limits, settings)
}

/// The refusal of a prompt that is too long for a context of this size.
fn too_long_for(limit: u32) -> Play {
    let message = format!(
        "This model's maximum context length is {limit} tokens. However, your messages resulted in 40000 tokens."
    );
    let error = json!({"message": message, "type": "invalid_request_error", "param": "messages",
                       "code": "context_length_exceeded"});
    Play::json(400, &json!({"error": error}))
}

/// A model with two targets of a protocol; the test's simulator is the second.
fn two_of(
    protocol: Protocol,
    first: &Simulator,
    second: Simulator,
    limits: &str,
    settings: &str,
) -> FaultTest {
    let targets = r#"[{ upstream = "one", model = "one" }, { upstream = "two", model = "two" }]"#;
    let gateway = Config::new(limits)
        .upstream("one", protocol, &first.base_url(), settings)
        .upstream("two", protocol, &second.base_url(), settings)
        .model(protocol_name(protocol), protocol, targets)
        .start(GATEWAY);
    FaultTest::of(gateway, second)
}

/// A model `chat` at an upstream of two hosts; the test's simulator is the second.
fn fallback(first: &Simulator) -> FaultTest {
    let second = Simulator::honest().unwrap();
    let settings = format!("fallback_base_url = \"{}\"", second.base_url());
    let gateway: Gateway = Config::new("")
        .upstream("chat", Protocol::Chat, &first.base_url(), &settings)
        .model(
            "chat",
            Protocol::Chat,
            r#"[{ upstream = "chat", model = "m" }]"#,
        )
        .start(GATEWAY);
    FaultTest::of(gateway, second)
}
