//! Log probabilities, which Chat Completions and Responses have in different places:
//! <https://platform.openai.com/docs/api-reference/chat/object>,
//! <https://platform.openai.com/docs/api-reference/responses/object>.

use engine::TextEvent;
use serde_json::{Value, json};
use sluicegate_translate::inbound::{self, Answer, ClientProtocol, Reply};
use sluicegate_translate::outbound::reply;
use vendor::Protocol;
use vendor::Protocol::{Chat, Responses};

use crate::streams::{data, parse_stream};
use crate::vendor_rules::{body, sent};
use crate::{NOW, chat_request, responses_request, stamp};

/// `logprobs` and `top_logprobs`: <https://platform.openai.com/docs/api-reference/chat/create>.
/// `include` and `top_logprobs`: <https://platform.openai.com/docs/api-reference/responses/create>.
#[test]
fn log_probabilities_are_requested_in_the_words_of_the_server() {
    let chat = json!({ "logprobs": true, "top_logprobs": 2 });
    let (request, dropped) = sent(Chat, Responses, &body(Chat, chat));
    insta::assert_snapshot!(request, @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi."}]}],"top_logprobs":2,"include":["message.output_text.logprobs"],"store":false}"#);
    assert_eq!(dropped, []);
    let responses = json!({ "include": ["message.output_text.logprobs"], "top_logprobs": 2 });
    let (request, dropped) = sent(Responses, Chat, &body(Responses, responses));
    insta::assert_snapshot!(request, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"logprobs":true,"top_logprobs":2}"#);
    assert_eq!(dropped, []);
    let none = json!({ "logprobs": false });
    let (request, _) = sent(Chat, Responses, &body(Chat, none));
    assert!(!request.contains("logprobs"), "{request}");
}

/// A token, with one alternative.
fn token(text: &str) -> Value {
    json!({ "token": text, "logprob": -0.25, "bytes": text.as_bytes(),
        "top_logprobs": [{ "token": text, "logprob": -0.25, "bytes": text.as_bytes() }] })
}

#[test]
fn chat_logprobs_reach_a_responses_client() {
    let chunk = |text: &str, finish: Value| {
        json!({ "id": "c", "choices": [{ "index": 0, "delta": { "content": text },
            "logprobs": { "content": [token(text)], "refusal": null }, "finish_reason": finish }] })
    };
    let events = parsed(
        Chat,
        &[chunk("He", Value::Null), chunk("y.", json!("stop"))],
    );
    let events = streamed::<inbound::Responses>(&responses_request(), &events);
    let of_type = |name: &str| -> Vec<_> {
        let is_it = |event: &&Value| event["type"] == name;
        events.iter().filter(is_it).cloned().collect()
    };
    let deltas = of_type("response.output_text.delta");
    assert_eq!(deltas.len(), 2);
    assert_eq!(deltas[0]["logprobs"], json!([token("He")]));
    assert_eq!(deltas[1]["logprobs"], json!([token("y.")]));
    let both = json!([token("He"), token("y.")]);
    assert_eq!(of_type("response.output_text.done")[0]["logprobs"], both);
    let completed = of_type("response.completed");
    let part = &completed[0]["response"]["output"][0]["content"][0];
    assert_eq!((&part["text"], &part["logprobs"]), (&json!("Hey."), &both));

    let whole = json!({ "id": "c", "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": "Hey." }, "logprobs": { "content": both } }] });
    let events = reply(Chat, whole.to_string().as_bytes()).unwrap();
    let reply = folded::<inbound::Responses>(&responses_request(), &events);
    assert_eq!(reply["output"][0]["content"][0]["logprobs"], both);
}

#[test]
fn responses_logprobs_reach_a_chat_client() {
    let place = json!({ "item_id": "m", "output_index": 0, "content_index": 0 });
    let event = |kind: &str, fields: Value| {
        let mut event = place.clone();
        event["type"] = format!("response.{kind}").into();
        let fields = fields.as_object().unwrap().clone();
        event.as_object_mut().unwrap().extend(fields);
        event
    };
    let delta = |text: &str| {
        event(
            "output_text.delta",
            json!({ "delta": text, "logprobs": [token(text)] }),
        )
    };
    let both = json!([token("He"), token("y.")]);
    let part =
        json!({ "type": "output_text", "text": "Hey.", "annotations": [], "logprobs": both });
    let item = json!({ "type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part] });
    let response = json!({ "id": "r", "status": "completed", "output": [item] });
    let stream = [
        event(
            "created",
            json!({ "response": { "id": "r", "status": "in_progress" } }),
        ),
        delta("He"),
        delta("y."),
        event(
            "output_text.done",
            json!({ "text": "Hey.", "logprobs": both }),
        ),
        event("output_item.done", json!({ "item": item })),
        event("completed", json!({ "response": response })),
    ];
    let events = parsed(Responses, &stream);
    let chunks = streamed::<inbound::Chat>(&chat_request(), &events);
    let tokens: Vec<_> = chunks
        .iter()
        .filter(|chunk| chunk["choices"][0]["logprobs"].is_object())
        .map(|chunk| {
            let choice = &chunk["choices"][0];
            (
                choice["delta"]["content"].clone(),
                choice["logprobs"].clone(),
            )
        })
        .collect();
    let of = |text: &str| {
        (
            json!(text),
            json!({ "content": [token(text)], "refusal": null }),
        )
    };
    assert_eq!(tokens, [of("He"), of("y.")]);

    let events = reply(Responses, response.to_string().as_bytes()).unwrap();
    let reply = folded::<inbound::Chat>(&chat_request(), &events);
    assert_eq!(
        reply["choices"][0]["logprobs"],
        json!({ "content": both, "refusal": null })
    );
}

fn parsed(protocol: Protocol, events: &[Value]) -> Vec<TextEvent> {
    let data: Vec<_> = events.iter().map(Value::to_string).collect();
    let (events, result) = parse_stream(protocol, &data);
    result.unwrap();
    events
}

/// The events that a streaming client gets.
fn streamed<D: ClientProtocol>(request: &D::Request, events: &[TextEvent]) -> Vec<Value> {
    let (mut answer, mut out) = (Answer::<D>::new(request, &stamp()), Vec::new());
    answer.open(&mut out);
    for event in events {
        answer.event(event.clone(), NOW, &mut out);
    }
    let is_json = |data: &String| data.starts_with('{');
    let data = data(&out);
    let events = data.iter().filter(|data| is_json(data));
    events
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// The plain reply.
fn folded<D: ClientProtocol>(request: &D::Request, events: &[TextEvent]) -> Value {
    let mut reply = Reply::<D>::new(request, &stamp());
    events
        .iter()
        .for_each(|event| reply.event(event.clone(), NOW));
    serde_json::to_value(reply.finish().unwrap()).unwrap()
}
