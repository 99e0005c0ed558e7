//! Conversations stay at their target among weighted ones, where the beginning of their prompt is in
//! the cache.

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::requests::{TEXT_PROTOCOLS, ask, path};
use testkit::{CLIENT_KEY, Config, Gateway};

use crate::GATEWAY;

/// A gateway whose model has two upstreams of equal weight.
struct Pair {
    gateway: Gateway,
    simulators: [Simulator; 2],
}

impl Pair {
    fn new() -> Self {
        let simulators = [(); 2].map(|()| Simulator::honest().unwrap());
        let [first, second] = simulators.each_ref().map(Simulator::base_url);
        let targets =
            r#"[{ upstream = "first", weight = 1 }, { upstream = "second", weight = 1 }]"#;
        let gateway = Config::new("")
            .upstream("first", Protocol::Chat, &first, "")
            .upstream("second", Protocol::Chat, &second, "")
            .model("mine", Protocol::Chat, targets)
            .start(GATEWAY);
        Self {
            gateway,
            simulators,
        }
    }

    /// Sends a request, and returns the index of the upstream that has answered it.
    fn ask(&self, protocol: Protocol, body: &Value) -> usize {
        let counts = || {
            self.simulators
                .each_ref()
                .map(|simulator| simulator.requests().len())
        };
        let before = counts();
        let response = self.gateway.post(CLIENT_KEY, path(protocol), body);
        assert_eq!(response.status, 200, "{}", response.text());
        let after = counts();
        let answered = (0..2).find(|index| after[*index] > before[*index]);
        answered.expect("an upstream has answered")
    }

    /// Asserts that all requests of each conversation go to one upstream, and not all conversations
    /// to the same.
    #[track_caller]
    fn keeps(&self, protocol: Protocol, requests: impl Fn(&str) -> Vec<Value>) {
        let mut used = [false; 2];
        // That all of them go to one upstream has a probability of 2^-31.
        for number in 0..32 {
            let requests = requests(&format!("conversation {number}"));
            let answered: Vec<_> = requests
                .iter()
                .map(|body| self.ask(protocol, body))
                .collect();
            let first = answered[0];
            assert!(
                answered.iter().all(|other| *other == first),
                "{protocol:?}: {answered:?}"
            );
            used[first] = true;
        }
        assert_eq!(used, [true; 2], "{protocol:?}");
    }
}

/// The name of the list with the conversation.
fn list(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "input",
        _ => "messages",
    }
}

/// A conversation is recognized by its first message, however it goes on, and whether the message is
/// a text or a list.
#[test]
fn a_conversation_stays_at_its_target() {
    let pair = Pair::new();
    for protocol in TEXT_PROTOCOLS {
        pair.keeps(protocol, |name| {
            let first = ask(protocol, "mine", name, false);
            let mut second = first.clone();
            let kind = if protocol == Protocol::Responses {
                "input_text"
            } else {
                "text"
            };
            second[list(protocol)] = json!([
                {"role": "user", "content": [{"type": kind, "text": name}]},
                {"role": "assistant", "content": "Hello."},
                {"role": "user", "content": "Go on."},
            ]);
            let mut third = second.clone();
            let turns = third[list(protocol)].as_array_mut().unwrap();
            turns.push(json!({"role": "assistant", "content": "I do."}));
            turns.push(json!({"role": "user", "content": "Stop."}));
            vec![first, second, third]
        });
    }
}

/// System instructions distinguish conversations that begin alike.
#[test]
fn instructions_distinguish_conversations() {
    let pair = Pair::new();
    for protocol in TEXT_PROTOCOLS {
        pair.keeps(protocol, |name| {
            let mut body = ask(protocol, "mine", "Hello.", false);
            match protocol {
                Protocol::Responses => body["instructions"] = name.into(),
                Protocol::Messages => body["system"] = name.into(),
                _ => {
                    let system = json!({"role": "system", "content": name});
                    body["messages"].as_array_mut().unwrap().insert(0, system);
                }
            }
            vec![body.clone(), body]
        });
    }
}

/// A client's own key of the conversation counts, whatever its messages are, and before the user.
#[test]
fn the_key_of_a_client_counts_first() {
    let pair = Pair::new();
    for protocol in TEXT_PROTOCOLS {
        let with = |text: &str, members: &Value| {
            let body = ask(protocol, "mine", text, false);
            testkit::changed(body, members)
        };
        pair.keeps(protocol, |name| {
            let by_user = json!({"metadata": {"user_id": name}});
            vec![with("Hello.", &by_user), with("Something else.", &by_user)]
        });
        pair.keeps(protocol, |name| {
            let of = |user| json!({"metadata": {"user_id": user}, "prompt_cache_key": name});
            vec![with("Hello.", &of("a")), with("Something else.", &of("b"))]
        });
    }
}
