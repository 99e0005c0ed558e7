//! Reasoning that a client of Responses keeps for the Messages model that produced it.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator};
use testkit::{Gateway, Response};

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
