//! Faults in the content of events.

use serde_json::{Value, json};
use sluicegate_simulator::Protocol;
use testkit::End;

use super::stream;
use crate::folds::decode;
use crate::samples::PROTOCOLS;

/// The event data of a scenario, and of the conforming reply to the same request.
fn data(name: &str, protocol: Protocol) -> (Vec<String>, Vec<String>) {
    let mut exchange = stream(name, protocol);
    let answer = exchange.response();
    assert_eq!((answer.status, answer.end), (200, End::Complete));
    (
        decode(&answer.body).unwrap(),
        decode(&exchange.honest_body()).unwrap(),
    )
}

#[test]
fn one_event_is_wrong_and_the_others_are_honest() {
    for name in [
        "malformed-event",
        "not-an-object",
        "wrong-type",
        "missing-delta",
    ] {
        for protocol in PROTOCOLS {
            let (events, honest) = data(name, protocol);
            assert_eq!(events.len(), honest.len(), "{name} {protocol:?}");
            let differ: Vec<usize> = (0..events.len())
                .filter(|place| events[*place] != honest[*place])
                .collect();
            let [place] = differ[..] else {
                panic!("{name} {protocol:?}: {differ:?}")
            };
            let event: Result<Value, _> = serde_json::from_str(&events[place]);
            match name {
                "malformed-event" => {
                    assert!(event.is_err() && honest[place].starts_with(&events[place]));
                }
                "not-an-object" => assert!(event.unwrap().is_string()),
                "wrong-type" => assert!(events[place].contains(":7")),
                _ => assert!(
                    !events[place].contains("\"delta\":") && !events[place].contains("b64_json")
                ),
            }
            // A chunk without a delta is empty, and that is allowed.
            let is_wrong = (name, protocol) != ("missing-delta", Protocol::Chat);
            assert_eq!(
                stream(name, protocol).fold().is_err(),
                is_wrong,
                "{name} {protocol:?}"
            );
        }
    }
}

#[test]
fn an_event_is_unknown() {
    for protocol in PROTOCOLS {
        let (events, honest) = data("unknown-event", protocol);
        assert_eq!(events.len(), honest.len() + 1, "{protocol:?}");
        let is_unknown = |event: &&String| event.contains("\"note\":\"unknown\"");
        let known: Vec<Value> = events
            .iter()
            .filter(|event| !is_unknown(event))
            .map(|event| plain(event))
            .collect();
        assert_eq!(
            known,
            honest.iter().map(|event| plain(event)).collect::<Vec<_>>()
        );
    }
    for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Images] {
        let mut exchange = stream("unknown-event", protocol);
        let mut folded = exchange.fold().unwrap();
        if protocol == Protocol::Chat {
            let message = folded["choices"][0]["message"].as_object_mut().unwrap();
            assert_eq!(
                message.shift_remove("note"),
                Some(json!("unknown")),
                "unknown fields are kept"
            );
        }
        assert_eq!(folded, exchange.honest_fold());
    }
    assert!(
        stream("unknown-event", Protocol::Responses)
            .fold()
            .unwrap_err()
            .contains("response.simulated")
    );
}

/// The data of an event without its sequence number.
fn plain(data: &str) -> Value {
    let mut data: Value = serde_json::from_str(data).unwrap_or_default();
    if data["sequence_number"].is_number() {
        data["sequence_number"].take();
    }
    data
}

#[test]
fn the_names_of_events_lie() {
    for protocol in PROTOCOLS {
        let (events, honest) = data("event-name-lies", protocol);
        assert_eq!(events, honest, "the data is correct");
        let response = stream("event-name-lies", protocol).response();
        let mut names: Vec<_> = response
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("event: "))
            .collect();
        assert_eq!(names.len(), events.len());
        names.dedup();
        assert_eq!(names.len(), 1);
    }
}

#[test]
fn an_index_is_huge() {
    for protocol in PROTOCOLS {
        let response = stream("huge-index-2147483648", protocol).response();
        assert_eq!(
            response.text().matches(":2147483648").count(),
            1,
            "{protocol:?}"
        );
        assert!(
            stream("huge-index-2147483648", protocol).fold().is_err(),
            "{protocol:?}"
        );
    }
}

#[test]
fn usage_is_missing_or_repeated() {
    for protocol in PROTOCOLS {
        let folded = stream("usage-missing", protocol).fold();
        match protocol {
            Protocol::Responses => assert_eq!(folded.unwrap()["usage"], Value::Null),
            Protocol::Chat | Protocol::Images => {
                assert_eq!(folded.unwrap().get("usage"), None, "{protocol:?}");
            }
            Protocol::Messages => {
                let (events, _) = data("usage-missing", protocol);
                let delta = events
                    .iter()
                    .find(|event| event.contains("message_delta"))
                    .unwrap();
                assert_eq!(
                    serde_json::from_str::<Value>(delta).unwrap().get("usage"),
                    None
                );
            }
        }
    }
    let (events, honest) = data("usage-twice", Protocol::Chat);
    let count = |events: &[String]| {
        events
            .iter()
            .filter(|event| event.contains("\"choices\":[]"))
            .count()
    };
    assert_eq!((count(&events), count(&honest)), (2, 1));
}

#[test]
fn a_failure_is_an_event_of_the_stream() {
    for (name, protocol) in [
        "failed-first",
        "failed-middle",
        "failed-last",
        "limited-first",
    ]
    .into_iter()
    .flat_map(|name| PROTOCOLS.map(|protocol| (name, protocol)))
    {
        let (events, honest) = data(name, protocol);
        let (failure, before) = events.split_last().unwrap();
        assert_eq!(before, &honest[..before.len()], "{name} {protocol:?}");
        let first = usize::from(protocol == Protocol::Responses);
        match name {
            "failed-first" | "limited-first" => assert_eq!(before.len(), first),
            "failed-middle" => assert_eq!(before.len(), (honest.len() / 2).max(first)),
            _ => assert!(before.len() + 4 > honest.len() && before.len() < honest.len()),
        }
        let failure: Value = serde_json::from_str(failure).unwrap();
        let limited = name == "limited-first";
        match protocol {
            Protocol::Responses => {
                assert_eq!(failure["type"], "response.failed");
                assert_eq!(failure["sequence_number"], before.len());
                let code = if limited {
                    "rate_limit_exceeded"
                } else {
                    "server_error"
                };
                assert_eq!(
                    (
                        &failure["response"]["status"],
                        &failure["response"]["error"]["code"]
                    ),
                    (&json!("failed"), &json!(code))
                );
            }
            Protocol::Messages => {
                assert_eq!(
                    failure["error"]["type"],
                    if limited {
                        "rate_limit_error"
                    } else {
                        "api_error"
                    }
                );
            }
            _ => assert_eq!(
                failure["error"]["type"],
                if limited { "requests" } else { "server_error" }
            ),
        }
        assert!(stream(name, protocol).fold().is_err());
    }
}
