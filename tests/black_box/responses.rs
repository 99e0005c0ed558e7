//! `POST /v1/responses` on the real model, streamed and not:
//! <https://platform.openai.com/docs/api-reference/responses>.

use serde_json::{Value, json};
use testkit::{TEXT, changed};

use crate::chain::GATEWAY;
use crate::chat::RED;

const PATH: &str = "/v1/responses";

fn body(change: Value) -> Value {
    let effort = json!({"effort": "none"});
    let base = json!({"model": "alt-flash", "reasoning": effort, "temperature": 0, "max_output_tokens": 48});
    changed(base, &change)
}

/// Sends a request plain and streamed; returns both replies, checked to be well-formed and equal
/// apart from their ids.
#[track_caller]
pub(crate) fn both(change: Value) -> Value {
    let server = GATEWAY.shared();
    let plain = server.post(TEXT, PATH, &body(change.clone()));
    assert_eq!(
        (plain.status, plain.header("content-type")),
        (200, Some("application/json")),
        "{}",
        plain.text()
    );
    let mut streamed = body(change);
    streamed["stream"] = json!(true);
    let streamed = grammar::responses(&server.post(TEXT, PATH, &streamed)).reply();
    let (plain, streamed) = (
        nameless(plain.json()),
        nameless(serde_json::to_value(streamed).unwrap()),
    );
    assert_eq!(plain, streamed, "the plain reply is the fold of the stream");
    assert_eq!(
        (&plain["object"], &plain["error"]),
        (&json!("response"), &Value::Null)
    );
    let usage = &plain["usage"];
    let sum = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], sum);
    plain
}

/// Removes the values that differ between replies: ids and times.
fn nameless(mut reply: Value) -> Value {
    for name in ["id", "created_at", "completed_at"] {
        reply[name].take();
    }
    for item in reply["output"].as_array_mut().unwrap() {
        item["id"].take();
        if item["type"] == "function_call" {
            item["call_id"].take();
        }
    }
    reply
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn item<'a>(reply: &'a Value, kind: &str) -> &'a Value {
    let mut items = reply["output"].as_array().unwrap().iter();
    items
        .find(|item| item["type"] == kind)
        .unwrap_or_else(|| panic!("no {kind}: {reply}"))
}

pub(crate) fn text_of(reply: &Value) -> &str {
    item(reply, "message")["content"][0]["text"]
        .as_str()
        .expect("text")
}

pub(crate) fn weather() -> Value {
    let city = json!({"city": {"type": "string"}});
    let parameters = json!({"type": "object", "properties": city, "required": ["city"], "additionalProperties": false});
    json!({"type": "function", "name": "get_weather", "description": "Look up the weather of a city.", "parameters": parameters, "strict": true})
}

#[test]
fn plain_text_from_a_string_and_from_a_list() {
    let question = "What is the capital of France?";
    let parts = json!([{"type": "input_text", "text": question}]);
    for input in [
        json!(question),
        json!([user(question)]),
        json!([{"type": "message", "role": "user", "content": parts}]),
    ] {
        let reply = both(json!({ "input": input }));
        assert!(text_of(&reply).contains("Paris"), "{reply}");
        assert_eq!(
            (&reply["status"], &reply["model"]),
            (&json!("completed"), &json!("alt-flash"))
        );
    }
}

#[test]
fn the_strict_model_takes_a_list_and_refuses_a_string() {
    let server = GATEWAY.shared();
    let ask = |input: Value| {
        server.post(
            TEXT,
            PATH,
            &json!({"model": "model-5.5", "input": input, "max_output_tokens": 32, "temperature": 0}),
        )
    };
    let refused = ask(json!("Say hello."));
    assert_eq!(
        (refused.status, &refused.json()["error"]["param"]),
        (400, &json!("input")),
        "{}",
        refused.text()
    );
    let taken = ask(json!([user("Say hello.")]));
    assert_eq!(
        (taken.status, &taken.json()["model"]),
        (200, &json!("model-5.5")),
        "{}",
        taken.text()
    );
}

#[test]
fn the_items_of_an_answer_can_be_sent_back_as_they_came() {
    let server = GATEWAY.shared();
    let first = server
        .post(TEXT, PATH, &body(json!({"input": [user("Say hello.")]})))
        .json();
    let mut input = vec![user("Say hello.")];
    input.extend(first["output"].as_array().unwrap().iter().cloned());
    input.push(user("And now goodbye."));
    both(json!({ "input": input }));
}

#[test]
fn pictures_are_answered_about() {
    let picture = json!({"type": "input_image", "image_url": RED, "detail": "low"});
    let content = json!([{"type": "input_text", "text": "What colour is this image?"}, picture]);
    let reply = both(json!({"input": [{"role": "user", "content": content}]}));
    assert!(text_of(&reply).to_lowercase().contains("red"), "{reply}");
}

#[test]
fn a_forced_function_is_called_with_arguments_that_fit() {
    for choice in [
        json!({"type": "function", "name": "get_weather"}),
        json!("required"),
    ] {
        let input = json!([user("What is the weather in Oslo?")]);
        let reply = both(
            json!({"input": input, "tools": [weather()], "tool_choice": choice, "max_output_tokens": 128}),
        );
        let call = item(&reply, "function_call");
        assert_eq!(
            (&call["name"], &reply["status"]),
            (&json!("get_weather"), &json!("completed"))
        );
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(
            arguments["city"].is_string() && arguments.as_object().unwrap().len() == 1,
            "{arguments}"
        );
        assert_eq!(
            reply["output"].as_array().unwrap().len(),
            1,
            "nothing beside the call"
        );
    }
}

#[test]
fn an_optional_function_is_called_when_it_is_called_for() {
    let ask = |choice: &str| {
        let input = json!([user("What is the weather in Oslo right now?")]);
        both(
            json!({"input": input, "tools": [weather()], "tool_choice": choice, "max_output_tokens": 96}),
        )
    };
    assert_eq!(item(&ask("auto"), "function_call")["name"], "get_weather");
    assert!(!text_of(&ask("none")).is_empty());
}

#[test]
fn json_mode_gives_an_object() {
    let input = json!([user(
        "Give me a JSON object with the name and age of a person."
    )]);
    let reply = both(
        json!({"input": input, "text": {"format": {"type": "json_object"}}, "max_output_tokens": 256}),
    );
    assert_eq!(reply["status"], "completed", "{reply}");
    assert!(
        serde_json::from_str::<Value>(text_of(&reply))
            .unwrap()
            .is_object()
    );
}

#[test]
fn a_json_schema_is_kept_to() {
    let properties = json!({"zip": {"type": "integer"}, "city": {"type": "string", "maxLength": 20}, "kind": {"enum": ["big", "small"]}});
    let schema = json!({"type": "object", "properties": properties, "required": ["zip", "city", "kind"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "name": "place", "strict": true, "schema": schema});
    let reply = both(
        json!({"input": [user("Describe Paris as JSON.")], "text": {"format": format}, "max_output_tokens": 256}),
    );
    let place: Value = serde_json::from_str(text_of(&reply)).unwrap();
    assert!(
        place["zip"].is_i64() && place["city"].is_string(),
        "{place}"
    );
    assert!(["big", "small"].contains(&place["kind"].as_str().unwrap()));
    assert_eq!(reply["text"]["format"], format, "the request is repeated");
}

#[test]
fn the_cap_on_the_output_is_kept() {
    let reply = both(
        json!({"input": [user("Write a long story about a dragon.")], "max_output_tokens": 16}),
    );
    assert_eq!(
        (&reply["status"], &reply["usage"]["output_tokens"]),
        (&json!("incomplete"), &json!(16))
    );
    assert_eq!(
        reply["incomplete_details"],
        json!({"reason": "max_output_tokens"})
    );
    assert_eq!(item(&reply, "message")["status"], "incomplete");
}

#[test]
fn thoughts_come_before_the_answer_and_are_counted() {
    let ask = |reasoning: Value| {
        both(
            json!({"input": "What is larger, 9.8 or 9.11?", "reasoning": reasoning, "max_output_tokens": 96}),
        )
    };
    for reply in [
        ask(json!({"effort": "low", "summary": "auto"})),
        ask(Value::Null),
    ] {
        assert_eq!(
            (&reply["output"][0]["type"], &reply["output"][1]["type"]),
            (&json!("reasoning"), &json!("message"))
        );
        assert!(
            reply["usage"]["output_tokens_details"]["reasoning_tokens"].as_u64() > Some(0),
            "{reply}"
        );
        assert!(!text_of(&reply).trim().is_empty());
    }
}

#[test]
fn the_stream_is_framed_as_clients_expect() {
    let server = GATEWAY.shared();
    let response = server.post(
        TEXT,
        PATH,
        &body(json!({"input": "Say hello.", "stream": true})),
    );
    grammar::responses(&response).reply();
    let text = response.text();
    assert!(
        text.starts_with("event: response.created\ndata: {\"type\":\"response.created\","),
        "{text}"
    );
    assert!(!text.contains("[DONE]"));
    assert_eq!(
        (
            response.header("cache-control"),
            response.header("x-accel-buffering")
        ),
        (Some("no-cache"), Some("no"))
    );
    for (number, data) in testkit::events::data(&response).iter().enumerate() {
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(
            event["sequence_number"], number,
            "numbered from 0 without a gap"
        );
    }
}

#[test]
fn fields_of_other_clients_are_accepted_or_refused() {
    let server = GATEWAY.shared();
    let ask = |change: Value| server.post(TEXT, PATH, &body(change));
    let reference = ask(json!({"input": [user("Hi."), {"type": "item_reference", "id": "msg_1"}]}));
    assert_eq!(
        (reference.status, &reference.json()["error"]["code"]),
        (404, &json!("not_found"))
    );
    let previous = ask(json!({"input": "Hi.", "previous_response_id": "resp_1"}));
    assert_eq!(
        (previous.status, &previous.json()["error"]["code"]),
        (400, &json!("previous_response_not_found"))
    );
    let unknown =
        ask(json!({"input": "Hi.", "a_field_of_tomorrow": {"x": 1}, "max_output_tokens": 16}));
    assert_eq!(unknown.status, 200, "{}", unknown.text());
    let hosted =
        ask(json!({"input": "Hi.", "tools": [{"type": "web_search"}], "max_output_tokens": 16}));
    assert_eq!(hosted.status, 200, "{}", hosted.text());
}
