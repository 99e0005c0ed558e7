//! Thoughts that a client of Responses keeps for the Messages model that had them (wire-reference §9.2).

use engine::{Stop, TextEvent};
use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator};
use translate::inbound::{Answer, Messages, Reply, Stamp};

use crate::client::Response;
use crate::house::House;
use crate::told;

const SEAL: &str = "c2VhbA/+==";
const HIDDEN: &str = "aGlkZGVu/+==";

/// A model that thinks, aloud and hidden, before it answers.
fn thinks(request: &Request) -> Play {
    let body = messages::Request::read(&request.body).unwrap().validate(&messages::Rules::default()).unwrap();
    let stamp = Stamp { bits: 7, created_at: 0 };
    let done = [
        TextEvent::Reasoning("Let me ".to_owned()),
        TextEvent::Reasoning("see.".to_owned()),
        TextEvent::ReasoningSignature(SEAL.to_owned()),
        TextEvent::RedactedReasoning(HIDDEN.to_owned()),
        TextEvent::Text("Here.".to_owned()),
        TextEvent::Finished { stop: Stop::End, usage: None },
    ];
    if request.streams() {
        let (mut answer, mut out) = (Answer::<Messages>::new(&body, &stamp), Vec::new());
        done.into_iter().for_each(|event| answer.event(event, 0, &mut out));
        return Play::sse(out);
    }
    let mut reply = Reply::<Messages>::new(&body, &stamp);
    done.into_iter().for_each(|event| reply.event(event, 0));
    Play::json(200, &serde_json::to_value(reply.finish().unwrap()).unwrap())
}

fn question(stream: bool, include: &[&str]) -> Value {
    let input = json!([{"role": "user", "content": "Think."}]);
    json!({"model": "messages", "stream": stream, "input": input, "include": include})
}

fn output(stream: bool, response: &Response) -> Vec<Value> {
    let reply = match stream {
        true => told::stream(Protocol::Responses, response).reply(),
        false => told::plain(Protocol::Responses, response),
    };
    reply["output"].as_array().unwrap().clone()
}

/// Asks on after an answer, and tells what the upstream is given of it, and whether the client is told that thoughts
/// were left out.
fn given(house: &House, simulator: &Simulator, output: &[Value]) -> (Vec<Value>, bool) {
    let mut next = question(false, &[]);
    let input = next["input"].as_array_mut().unwrap();
    input.extend(output.iter().cloned());
    input.push(json!({"role": "user", "content": "Go on."}));
    let response = house.ask(Protocol::Responses, &next);
    assert_eq!(response.status, 200, "{}", response.text());
    let asked: Value = serde_json::from_slice(&simulator.requests().last().unwrap().body).unwrap();
    let dropped =
        response.header("x-sluicegate-dropped").unwrap_or_default().split(", ").any(|name| name == "reasoning");
    (asked["messages"][1]["content"].as_array().unwrap().clone(), dropped)
}

fn kinds(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["type"].as_str().unwrap()).collect()
}

#[test]
fn thoughts_come_back_to_the_model_that_had_them() {
    let simulator = Simulator::start(thinks).unwrap();
    let house = House::before(&simulator, "their-model", "", "");
    for stream in [false, true] {
        let response = house.ask(Protocol::Responses, &question(stream, &["reasoning.encrypted_content"]));
        assert!(!response.text().contains(SEAL) && !response.text().contains(HIDDEN), "in envelopes alone");
        let output = output(stream, &response);
        assert_eq!(kinds(&output), ["reasoning", "reasoning", "message"]);
        assert_eq!((&output[0]["summary"][0]["text"], &output[1]["summary"]), (&json!("Let me see."), &json!([])));

        let thinking = json!({"type": "thinking", "thinking": "Let me see.", "signature": SEAL});
        let hidden = json!({"type": "redacted_thinking", "data": HIDDEN});
        let text = json!({"type": "text", "text": "Here."});
        assert_eq!(given(&house, &simulator, &output), (vec![thinking, hidden, text.clone()], false));

        // What anybody made up is no seal, and thoughts without one are not taken back.
        let mut forged = output;
        for item in &mut forged[..2] {
            let sealed = item["encrypted_content"].as_str().unwrap();
            item["encrypted_content"] = format!("{}AAAA", &sealed[..sealed.len() - 4]).into();
        }
        assert_eq!(given(&house, &simulator, &forged), (vec![text], true));
    }
}

#[test]
fn who_does_not_ask_for_sealed_thoughts_gets_none() {
    let simulator = Simulator::start(thinks).unwrap();
    let house = House::before(&simulator, "their-model", "", "");
    for stream in [false, true] {
        let output = output(stream, &house.ask(Protocol::Responses, &question(stream, &[])));
        assert_eq!(kinds(&output), ["reasoning", "message"]);
        assert_eq!(output[0]["encrypted_content"], Value::Null);
    }
}
