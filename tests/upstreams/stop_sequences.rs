//! Stop sequences of clients, before upstreams whose protocol has none.

use std::time::Duration;

use serde_json::{Value, json};
use simulator::{Cut, Play, Protocol, Request, Simulator, honest};
use testkit::changed;
use testkit::requests::{ask, protocol_name};

use crate::{GATEWAY, folded};

/// A request of a client that stops before `TWO`, in the protocol of each client.
fn request(client: Protocol, stream: bool) -> Value {
    let name = match client {
        Protocol::Messages => "stop_sequences",
        _ => "stop",
    };
    let upstream = protocol_name(Protocol::Responses);
    let body = ask(client, upstream, "one two three four", stream);
    changed(body, &json!({ name: ["other", TWO] }))
}

/// Asserts that a reply has the text before `TWO`, and says why it has ended.
#[track_caller]
fn check(client: Protocol, reply: &Value) {
    if client == Protocol::Messages {
        assert_eq!(reply["content"][0]["text"], "You said: one ", "{reply}");
        assert_eq!(reply["stop_reason"], "stop_sequence");
        assert_eq!(reply["stop_sequence"], TWO);
    } else {
        let choice = &reply["choices"][0];
        assert_eq!(choice["message"]["content"], "You said: one ", "{reply}");
        assert_eq!(choice["finish_reason"], "stop");
    }
}

/// The sequence begins in one event of the upstream and ends in the next one. The upstream never
/// ends its stream.
#[test]
fn a_stream_ends_before_a_stop_sequence_and_its_upstream_is_cancelled() {
    let endless = |request: &Request| -> Play {
        let play = honest::answer(request);
        let pieces = play.pieces().count();
        play.cut_after(pieces - 1, Cut::Hold)
    };
    for client in [Protocol::Chat, Protocol::Messages] {
        let simulator = Simulator::start(endless).unwrap();
        let gateway = GATEWAY.before(&simulator, "", "");
        let response = gateway.ask(client, &request(client, true));
        check(client, &folded::reply(client, &response));
        assert!(simulator.wait_for_close(0, PATIENCE).is_some());
        assert_eq!(simulator.requests()[0].json()["stop"], Value::Null);
    }
}

/// A plain answer comes whole, so that its usage is known.
#[test]
fn a_plain_answer_ends_before_a_stop_sequence_and_has_its_usage() {
    let simulator = Simulator::honest().unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    for (client, count) in [
        (Protocol::Chat, "completion_tokens"),
        (Protocol::Messages, "output_tokens"),
    ] {
        let reply = gateway.ask(client, &request(client, false)).json();
        check(client, &reply);
        assert!(reply["usage"][count].as_u64() > Some(0), "{reply}");
    }
}

const TWO: &str = "two th";
const PATIENCE: Duration = Duration::from_secs(10);
