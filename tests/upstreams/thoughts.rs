//! The seals of reasoning: they come back to the server that made them, and reach no other one.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator};
use testkit::{Config, Gateway, Response};

use crate::GATEWAY;
use crate::folded;

const SEAL: &str = "c2VhbA/+==";
const HIDDEN: &str = "aGlkZGVu/+==";

const REPLY: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"their-model","content":[
{"type":"thinking","thinking":"Let me see.","signature":"c2VhbA/+=="},
{"type":"redacted_thinking","data":"aGlkZGVu/+=="},
{"type":"text","text":"Here."}
],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":9}}"#;

const STREAM: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"their-model","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2VhbA/+=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"aGlkZGVu/+=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Here."}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// A model that reasons, visibly and redacted, before it answers: in the vendor's own form, as in
/// <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>.
fn thinks(request: &Request) -> Play {
    if request.streams() {
        Play::events([STREAM])
    } else {
        Play::answer(200, &[("content-type", "application/json")], REPLY)
    }
}

fn question(stream: bool, include: &[&str]) -> Value {
    let input = json!([{"role": "user", "content": "Think."}]);
    json!({"model": "messages", "stream": stream, "input": input, "include": include})
}

fn output(stream: bool, response: &Response) -> Vec<Value> {
    let reply = match stream {
        true => folded::reply(Protocol::Responses, response),
        false => grammar::plain(Protocol::Responses, response),
    };
    reply["output"].as_array().unwrap().clone()
}

/// Sends a follow-up request after a reply, and returns the items of the reply that the upstream
/// receives, and whether the client is informed that reasoning was dropped.
fn given(gateway: &Gateway, simulator: &Simulator, output: &[Value]) -> (Vec<Value>, bool) {
    let mut next = question(false, &[]);
    let input = next["input"].as_array_mut().unwrap();
    input.extend(output.iter().cloned());
    input.push(json!({"role": "user", "content": "Go on."}));
    let response = gateway.ask(Protocol::Responses, &next);
    assert_eq!(response.status, 200, "{}", response.text());
    let request: Value =
        serde_json::from_slice(&simulator.requests().last().unwrap().body).unwrap();
    let dropped = response
        .header("x-sluicegate-dropped")
        .unwrap_or_default()
        .split(", ")
        .any(|name| name == "reasoning");
    (
        request["messages"][1]["content"]
            .as_array()
            .unwrap()
            .clone(),
        dropped,
    )
}

fn kinds(items: &[Value]) -> Vec<&str> {
    items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect()
}

#[test]
fn thoughts_come_back_to_the_model_that_had_them() {
    let simulator = Simulator::start(thinks).unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    for stream in [false, true] {
        let response = gateway.ask(
            Protocol::Responses,
            &question(stream, &["reasoning.encrypted_content"]),
        );
        assert!(
            !response.text().contains(SEAL) && !response.text().contains(HIDDEN),
            "in envelopes alone"
        );
        let output = output(stream, &response);
        assert_eq!(kinds(&output), ["reasoning", "reasoning", "message"]);
        assert_eq!(
            (&output[0]["summary"][0]["text"], &output[1]["summary"]),
            (&json!("Let me see."), &json!([]))
        );

        let thinking = json!({"type": "thinking", "thinking": "Let me see.", "signature": SEAL});
        let hidden = json!({"type": "redacted_thinking", "data": HIDDEN});
        let text = json!({"type": "text", "text": "Here."});
        assert_eq!(
            given(&gateway, &simulator, &output),
            (vec![thinking, hidden, text.clone()], false)
        );

        // An invented signature is not accepted, and reasoning without one is not sent back.
        let mut forged = output;
        for item in &mut forged[..2] {
            let sealed = item["encrypted_content"].as_str().unwrap();
            item["encrypted_content"] = format!("{}AAAA", &sealed[..sealed.len() - 4]).into();
        }
        assert_eq!(given(&gateway, &simulator, &forged), (vec![text], true));
    }
}

#[test]
fn who_does_not_ask_for_sealed_thoughts_gets_none() {
    let simulator = Simulator::start(thinks).unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    for stream in [false, true] {
        let output = output(
            stream,
            &gateway.ask(Protocol::Responses, &question(stream, &[])),
        );
        assert_eq!(kinds(&output), ["reasoning", "message"]);
        assert_eq!(output[0]["encrypted_content"], Value::Null);
    }
}

/// Starts a gateway whose model "m" has a target that fails and then one that answers, with these
/// protocols.
fn with_failing_target(first: Protocol, second: Protocol) -> (Simulator, Simulator, Gateway) {
    let failing = Simulator::start(|_| Play::json(500, &json!({"error": {"message": "No."}})));
    let (failing, answering) = (failing.unwrap(), Simulator::honest().unwrap());
    let gateway = Config::new("")
        .keyless("first", first, &failing.base_url())
        .keyless("second", second, &answering.base_url())
        .model(
            "m",
            second,
            r#"[{ upstream = "first" }, { upstream = "second" }]"#,
        )
        .start(GATEWAY);
    (failing, answering, gateway)
}

/// Sends a request to a model whose first target fails, and returns the request that the second one
/// gets and the names of the fields that are lost.
fn fallen_back(protocol: Protocol, body: &Value) -> (Value, String) {
    let (first, second, gateway) = with_failing_target(protocol, protocol);
    let response = gateway.ask(protocol, body);
    assert_eq!(response.status, 200, "{}", response.text());
    let lost = response.header("x-sluicegate-dropped").unwrap_or_default();
    let asked = |server: &Simulator| String::from_utf8(server.requests()[0].body.to_vec()).unwrap();
    assert!(asked(&first).contains("c2VhbA"), "it had the seal");
    assert!(!asked(&second).contains("c2VhbA"), "{}", asked(&second));
    (second.requests()[0].json(), lost.to_owned())
}

/// An account cannot open what another one has encrypted: `invalid_encrypted_content`.
#[test]
fn seals_of_the_first_target_do_not_reach_the_second() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "encrypted_content": "c2VhbA=="});
    let user = json!({"role": "user", "content": "Think."});
    let answer = json!({"role": "assistant", "content": "Here."});
    let body = json!({"model": "m", "input": [user, reasoning, answer, user]});
    let (asked, lost) = fallen_back(Protocol::Responses, &body);
    assert_eq!(asked["input"], json!([user, answer, user]));
    assert_eq!(lost, "reasoning");

    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2VhbA=="});
    let text = json!({"type": "text", "text": "Here."});
    let answer = json!({"role": "assistant", "content": [thinking, text]});
    let body = json!({"model": "m", "max_tokens": 9, "messages": [user, answer, user]});
    let (asked, lost) = fallen_back(Protocol::Messages, &body);
    assert_eq!(asked["messages"][1]["content"], json!([text]));
    assert_eq!(lost, "reasoning");

    let details = json!([{"type": "reasoning.encrypted", "data": "c2VhbA=="}]);
    let answer = json!({"role": "assistant", "content": "Here.", "reasoning_details": details});
    let body = json!({"model": "m", "messages": [user, answer, user]});
    let (asked, lost) = fallen_back(Protocol::Chat, &body);
    let answer = json!({"role": "assistant", "content": "Here."});
    assert_eq!(asked["messages"], json!([user, answer, user]));
    assert_eq!(lost, "messages[].reasoning_details");
}

/// Codex sends back the encrypted reasoning of the target that has answered in place of the first.
#[test]
fn seals_without_a_mark_reach_the_first_target_of_their_protocol() {
    let cases = [
        (
            Protocol::Responses,
            Protocol::Chat,
            json!({"model": "m", "input": [
                {"role": "user", "content": "Think."},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbA=="},
                {"role": "assistant", "content": "Here."},
                {"role": "user", "content": "Go on."},
            ]}),
        ),
        (
            Protocol::Messages,
            Protocol::Responses,
            json!({"model": "m", "max_tokens": 9, "messages": [
                {"role": "user", "content": "Think."},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2VhbA=="},
                    {"type": "text", "text": "Here."},
                ]},
                {"role": "user", "content": "Go on."},
            ]}),
        ),
    ];
    for (protocol, other, body) in cases {
        let (first, second, gateway) = with_failing_target(other, protocol);
        assert_eq!(gateway.ask(protocol, &body).status, 200);
        let list = if protocol == Protocol::Responses {
            "input"
        } else {
            "messages"
        };
        assert!(!first.requests().is_empty(), "it was asked first");
        assert_eq!(second.requests()[0].json()[list], body[list]);
    }
}

/// A client keeps the conversation when it changes its model, and the next server cannot read the
/// thoughts of the one before.
#[test]
fn thoughts_of_a_model_do_not_reach_another_one() {
    let simulator = Simulator::start(thinks).unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    let response = gateway.ask(
        Protocol::Responses,
        &question(false, &["reasoning.encrypted_content"]),
    );
    let user = json!({"role": "user", "content": "Think."});
    let mut input = vec![user.clone()];
    input.extend(output(false, &response));
    input.push(user);
    let honest = Simulator::honest().unwrap();
    let gateway = GATEWAY.before(&honest, "", "");
    let body = json!({"model": "responses", "input": input});
    let response = gateway.ask(Protocol::Responses, &body);
    assert_eq!(response.header("x-sluicegate-dropped"), Some("reasoning"));
    let asked = honest.requests()[0].json();
    let items = asked["input"].as_array().unwrap();
    let kinds: Vec<_> = items.iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, [&Value::Null, &json!("message"), &Value::Null]);
}

/// A client may change to a model of another account within a conversation.
#[test]
fn relayed_seals_come_back_to_their_account_alone() {
    let (one, two) = (
        Simulator::start(thinks).unwrap(),
        Simulator::start(thinks).unwrap(),
    );
    let gateway = Config::new("")
        .keyless("one", Protocol::Messages, &one.base_url())
        .keyless("two", Protocol::Messages, &two.base_url())
        .model("one", Protocol::Messages, r#"[{ upstream = "one" }]"#)
        .model("two", Protocol::Messages, r#"[{ upstream = "two" }]"#)
        .start(GATEWAY);
    let user = json!({"role": "user", "content": "Think."});
    let question = |model: &str, stream: bool, messages: &[&Value]| json!({"model": model, "stream": stream, "max_tokens": 9, "messages": messages});
    for stream in [false, true] {
        let response = gateway.ask(Protocol::Messages, &question("one", stream, &[&user]));
        let reply = match stream {
            true => folded::reply(Protocol::Messages, &response),
            false => grammar::plain(Protocol::Messages, &response),
        };
        let signature = reply["content"][0]["signature"].as_str().unwrap();
        assert!(
            signature.starts_with("sg2.") && signature.ends_with(SEAL),
            "{signature}"
        );
        let answer = json!({"role": "assistant", "content": reply["content"]});
        let next = |model| question(model, false, &[&user, &answer, &user]);

        let response = gateway.ask(Protocol::Messages, &next("one"));
        assert_eq!(response.header("x-sluicegate-dropped"), None);
        let content = &one.requests().last().unwrap().json()["messages"][1]["content"];
        let thinking = json!({"type": "thinking", "thinking": "Let me see.", "signature": SEAL});
        let hidden = json!({"type": "redacted_thinking", "data": HIDDEN});
        assert_eq!((&content[0], &content[1]), (&thinking, &hidden));

        let response = gateway.ask(Protocol::Messages, &next("two"));
        assert_eq!(response.header("x-sluicegate-dropped"), Some("reasoning"));
        let content = &two.requests().last().unwrap().json()["messages"][1]["content"];
        assert_eq!(kinds(content.as_array().unwrap()), ["text"]);
    }
}

/// Several keys of one account open the same seals.
#[test]
fn seals_go_to_each_upstream_of_an_account() {
    let (one, two) = (
        Simulator::start(thinks).unwrap(),
        Simulator::start(thinks).unwrap(),
    );
    let upstream = |name: &str, simulator: &Simulator| {
        let base_url = simulator.base_url();
        format!(
            "[[upstreams]]\nname = \"{name}\"\nprotocol = \"messages\"\nbase_url = \"{base_url}\"\naccount = \"production\""
        )
    };
    let gateway = Config::new("")
        .section(&upstream("one", &one))
        .section(&upstream("two", &two))
        .model("one", Protocol::Messages, r#"[{ upstream = "one" }]"#)
        .model("two", Protocol::Messages, r#"[{ upstream = "two" }]"#)
        .start(GATEWAY);
    let user = json!({"role": "user", "content": "Think."});
    let question = |model: &str| json!({"model": model, "stream": false, "input": [user], "include": ["reasoning.encrypted_content"]});
    let response = gateway.ask(Protocol::Responses, &question("one"));
    let mut next = question("two");
    let input = next["input"].as_array_mut().unwrap();
    input.extend(output(false, &response));
    input.push(user.clone());
    let response = gateway.ask(Protocol::Responses, &next);
    assert_eq!(
        response.header("x-sluicegate-dropped"),
        Some("input[].phase")
    );
    let content = &two.requests()[0].json()["messages"][1]["content"];
    let thinking = json!({"type": "thinking", "thinking": "Let me see.", "signature": SEAL});
    assert_eq!(content[0], thinking);
}

/// A server refuses a seal of a conversation that has moved, and answers without it: "Invalid `signature`
/// in `thinking` block" (<https://github.com/anthropics/claude-code/issues/63155>).
#[test]
fn a_target_that_refuses_a_seal_is_asked_again_without_any() {
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}});
    let simulator = Simulator::start(move |request| {
        match String::from_utf8_lossy(&request.body).contains("c2VhbA") {
            true => Play::json(400, &refusal),
            false => thinks(request),
        }
    });
    let simulator = simulator.unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    let user = json!({"role": "user", "content": "Think."});
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": SEAL});
    let answer =
        json!({"role": "assistant", "content": [thinking, {"type": "text", "text": "Here."}]});
    for stream in [false, true] {
        let body = json!({"model": "messages", "stream": stream, "max_tokens": 9,
            "messages": [user, answer, user]});
        let response = gateway.ask(Protocol::Messages, &body);
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-sluicegate-dropped"), Some("reasoning"));
        let content = &simulator.requests().last().unwrap().json()["messages"][1]["content"];
        assert_eq!(kinds(content.as_array().unwrap()), ["text"]);
    }
    assert_eq!(simulator.requests().len(), 4);
}
