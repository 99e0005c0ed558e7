//! What is owed after each fault.

use std::collections::BTreeMap;

use serde_json::Value;
use simulator::Protocol;

use crate::client::Response;
use crate::drawing::LONG;
use crate::fault::{Fault, Kind};
use crate::law::{assert_private, check_headers, check_refusal, check_told};
use crate::question::Question;
use crate::said::Said;
use crate::stream::End;
use crate::told;
use crate::world::{Left, Seen};

/// How an answer ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// A stream that said that it is whole.
    StreamWhole,
    /// A stream that told its failure.
    StreamFailed,
    /// A plain reply.
    Reply,
    /// A status that says that there is no answer.
    Refused,
    /// A plain reply that broke off.
    BrokenOff,
    /// The client was not there to see it.
    Unseen,
}

/// Holds what was seen against what is owed.
///
/// # Panics
/// When it is not what is owed.
pub(crate) fn judge(fault: &Fault, seen: &Seen, log: &str, panics: &[String]) -> Verdict {
    assert!(panics.is_empty(), "a task panicked: {}", panics.join("\n"));
    assert_eq!(seen.left, Left::default(), "something is left over");
    assert_private("the log", log);
    assert!(seen.asked.is_empty() || !log.is_empty(), "nothing was logged");
    seen.asked.iter().for_each(check_headers);
    // A client that left before it was answered may never have been heard.
    let may_be_unheard = !seen.stayed && matches!(fault.kind, Kind::Upload(..) | Kind::Leaves(..));
    let requests = if seen.was_asked { 1.0 } else { 0.0 };
    let is_owed = seen.requests == requests || (may_be_unheard && seen.requests == 0.0);
    assert!(is_owed, "{} outcomes of {requests} requests", seen.requests);
    let Some(response) = &seen.response else {
        assert!(seen.streams.values().sum::<f64>() <= 1.0, "outcomes: {:?}", seen.streams);
        // A reply that passes may break off before its head has left.
        let is_broken = !seen.said.is_whole || serde_json::from_slice::<Value>(&seen.said.body).is_err();
        let passed = fault.client == Protocol::Images && seen.said.body.len() > LONG && is_broken;
        assert!(!seen.stayed || passed, "no answer");
        return if seen.stayed { Verdict::BrokenOff } else { Verdict::Unseen };
    };
    let verdict = verdict(fault, seen, response);
    check_outcome(verdict, &seen.streams);
    if fault.kind.is_harmless() && !fault.is_slow() {
        let owed = if fault.stream { Verdict::StreamWhole } else { Verdict::Reply };
        assert_eq!(verdict, owed, "nothing went wrong");
    }
    verdict
}

fn verdict(fault: &Fault, seen: &Seen, response: &Response) -> Verdict {
    check_told(&response.headers);
    assert_private("the body", &String::from_utf8_lossy(&response.body));
    if response.is_stream() {
        return stream(fault, seen, response);
    }
    if response.status != 200 {
        // A request that was cut by the client is told so in other words.
        if !matches!(fault.kind, Kind::Upload(..)) {
            check_refusal(fault.client, response);
        }
        return Verdict::Refused;
    }
    if !response.complete {
        assert_eq!(fault.client, Protocol::Images, "a plain reply breaks off");
        assert!(seen.said.body.starts_with(&response.body), "not how the upstream's reply begins");
        return Verdict::BrokenOff;
    }
    check_reply(fault, seen, response);
    check_nonce(fault, response);
    Verdict::Reply
}

fn check_reply(fault: &Fault, seen: &Seen, response: &Response) {
    if fault.client == Protocol::Images && response.body.len() > LONG {
        // It passed unread: it is what the upstream said, of success or not.
        assert!(seen.said.is_ok() && seen.said.is_whole && seen.said.body == response.body, "another reply");
        return;
    }
    if is_reply(fault.client, &told::plain(fault.client, response)) {
        return check_success(fault, seen, response);
    }
    // A changed word may be one that nobody knows, and is passed on.
    assert!(matches!(fault.kind, Kind::Changed(..)), "a reply that says no success: {}", response.text());
}

fn stream(fault: &Fault, seen: &Seen, response: &Response) -> Verdict {
    let spoken = told::spoken(fault.client, &response.body);
    let said = told::spoken(fault.upstream, &seen.said.body);
    match end(fault, response) {
        End::Reply(_) => {
            check_success(fault, seen, response);
            check_nonce(fault, response);
            if says_the_same(fault, seen) {
                assert_eq!(spoken, said, "all that was said");
            }
            Verdict::StreamWhole
        }
        End::Failure(_) => {
            if says_the_same(fault, seen) {
                assert!(said.starts_with(&spoken), "'{spoken}' is not how '{said}' begins");
            }
            Verdict::StreamFailed
        }
    }
}

/// How a stream ended, by the grammar of its protocol.
fn end(fault: &Fault, response: &Response) -> End<Value> {
    let events = told::events(&response.body);
    let is_stranger = |data: &String| matches!(responses::Event::read(data), Ok(responses::Event::Other(_)));
    if fault.client == Protocol::Responses && events.iter().any(is_stranger) {
        return end_among_strangers(response, &events);
    }
    match fault.client {
        Protocol::Images => told::pictures(fault.drawing.operation(), fault.drawing.count, response),
        client => told::stream(client, response),
    }
}

/// The same of a stream with events that its protocol does not know: they are passed on, and the grammar has none. That
/// there is one end, and nothing behind it, holds all the same.
fn end_among_strangers(response: &Response, events: &[String]) -> End<Value> {
    assert!(response.complete, "the body came to its end");
    let events: Vec<Value> = events.iter().map(|data| serde_json::from_str(data).expect("JSON")).collect();
    let is_end = |event: &&Value| ENDS.contains(&event["type"].as_str().unwrap_or_default());
    let ends: Vec<_> = events.iter().filter(is_end).collect();
    let [end] = ends[..] else { panic!("{} ends: {}", ends.len(), response.text()) };
    assert_eq!(Some(end), events.last(), "something comes after the end");
    if is_success(Protocol::Responses, end) { End::Reply(end.clone()) } else { End::Failure(end.to_string()) }
}

/// The answer is to this request and to no other.
fn check_nonce(fault: &Fault, response: &Response) {
    let quotes = fault.question == Question::Text && fault.client != Protocol::Images && fault.kind.keeps_words();
    if quotes {
        let body = match fault.stream {
            true => told::spoken(fault.client, &response.body),
            false => response.text().to_owned(),
        };
        assert!(body.contains(&fault.nonce()), "the answer to another request: {body}");
    }
}

/// Whether the words of the upstream can be compared with those of the client one by one.
fn says_the_same(fault: &Fault, seen: &Seen) -> bool {
    let is_stream = !told::events(&seen.said.body).is_empty();
    is_stream && fault.kind.keeps_words()
}

/// A stream that was begun has one outcome, and it goes with how it ended.
fn check_outcome(verdict: Verdict, streams: &BTreeMap<String, f64>) {
    let outcomes: Vec<_> = streams.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    match verdict {
        Verdict::StreamWhole => {
            assert!(matches!(outcomes[..], [("completed" | "incomplete", 1.0)]), "whole, but {outcomes:?}");
        }
        Verdict::StreamFailed => {
            let [(name, 1.0)] = outcomes[..] else { panic!("one outcome, not {outcomes:?}") };
            assert!(!["completed", "incomplete"].contains(&name), "failed, but {name}");
        }
        _ => assert!(outcomes.iter().map(|(_, count)| count).sum::<f64>() <= 1.0, "{verdict:?}: {outcomes:?}"),
    }
}

/// A client is told success only when its upstream said so.
fn check_success(fault: &Fault, seen: &Seen, response: &Response) {
    let said = || format!("{} {}", seen.said.status, String::from_utf8_lossy(&seen.said.body));
    assert!(said_success(fault, &seen.said), "a false success: {}\nof: {}", response.text(), said());
}

/// Whether an upstream said, in the words of its protocol, that its answer is whole.
fn said_success(fault: &Fault, said: &Said) -> bool {
    let upstream = fault.upstream;
    if !said.is_ok() {
        return false;
    }
    if let Ok(reply @ Value::Object(_)) = serde_json::from_slice(&said.body) {
        return said.is_whole && is_reply(upstream, &reply);
    }
    let events = told::events(&said.body);
    let ends = events.iter().filter(|data| is_success(upstream, &serde_json::from_str(data).unwrap_or_default()));
    // Each picture has an end of its own.
    let owed = if upstream == Protocol::Images { fault.drawing.count as usize } else { 1 };
    ends.count() >= owed
}

/// Whether a plain reply is whole by its own words.
fn is_reply(upstream: Protocol, reply: &Value) -> bool {
    let list = |name: &str| reply[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let is = match upstream {
        Protocol::Responses => matches!(reply["status"].as_str(), Some("completed" | "incomplete")),
        Protocol::Chat => !list("choices").is_empty() && list("choices").iter().all(is_finished),
        Protocol::Messages => reply["type"] == "message" && reply["stop_reason"].is_string(),
        Protocol::Images => !list("data").is_empty(),
    };
    is && reply["error"].is_null()
}

/// Whether an event of a stream says that the answer is whole.
fn is_success(upstream: Protocol, event: &Value) -> bool {
    let kind = event["type"].as_str().unwrap_or_default();
    match upstream {
        Protocol::Responses => matches!(kind, "response.completed" | "response.incomplete"),
        Protocol::Chat => event["choices"].as_array().into_iter().flatten().any(is_finished),
        Protocol::Messages => kind == "message_stop",
        Protocol::Images => kind.ends_with(".completed"),
    }
}

fn is_finished(choice: &Value) -> bool {
    choice["finish_reason"].is_string()
}

/// The events that end a stream of Responses.
const ENDS: [&str; 3] = ["response.completed", "response.incomplete", "response.failed"];
