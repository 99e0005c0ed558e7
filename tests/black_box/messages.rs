//! `POST /v1/messages` and its token count on the real model, streamed and not:
//! <https://docs.anthropic.com/en/api/messages>.

use serde_json::{Value, json};
use testkit::{MESSAGES, Request, changed};

use crate::chain::GATEWAY;
use crate::chat::RED;

const PATH: &str = "/v1/messages";

fn body(change: Value) -> Value {
    let base = json!({"model": "msg-sonnet-5", "temperature": 0, "max_tokens": 48});
    changed(base, &change)
}

/// Sends a request plain and streamed; returns both replies, checked to be well-formed and equal
/// apart from their ids.
#[track_caller]
pub(crate) fn both(change: Value) -> Value {
    let server = GATEWAY.shared();
    let plain = server.post(MESSAGES, PATH, &body(change.clone()));
    assert_eq!(
        (plain.status, plain.header("content-type")),
        (200, Some("application/json")),
        "{}",
        plain.text()
    );
    let mut streamed = body(change);
    streamed["stream"] = json!(true);
    let streamed = grammar::messages(&server.post(MESSAGES, PATH, &streamed)).reply();
    let (plain, streamed) = (
        nameless(plain.json()),
        nameless(serde_json::to_value(streamed).unwrap()),
    );
    assert_eq!(plain, streamed, "the plain reply is the fold of the stream");
    assert_eq!(
        (&plain["type"], &plain["role"]),
        (&json!("message"), &json!("assistant"))
    );
    assert!(
        plain["usage"]["input_tokens"].as_u64() > Some(0)
            && plain["usage"]["output_tokens"].as_u64() > Some(0)
    );
    plain
}

/// Removes the values that differ between replies.
fn nameless(mut reply: Value) -> Value {
    reply["id"].take();
    for block in reply["content"].as_array_mut().unwrap() {
        if block["type"] == "tool_use" {
            block["id"].take();
        }
    }
    reply
}

pub(crate) fn user(content: impl Into<Value>) -> Value {
    json!({"role": "user", "content": content.into()})
}

fn block<'a>(reply: &'a Value, kind: &str) -> &'a Value {
    let mut blocks = reply["content"].as_array().unwrap().iter();
    blocks
        .find(|block| block["type"] == kind)
        .unwrap_or_else(|| panic!("no {kind}: {reply}"))
}

pub(crate) fn text_of(reply: &Value) -> &str {
    block(reply, "text")["text"].as_str().expect("text")
}

pub(crate) fn weather() -> Value {
    let city = json!({"city": {"type": "string"}});
    let schema = json!({"type": "object", "properties": city, "required": ["city"], "additionalProperties": false});
    json!({"name": "get_weather", "description": "Look up the weather of a city.", "input_schema": schema})
}

#[test]
fn plain_text_from_a_string_and_from_blocks() {
    let question = "What is the capital of France?";
    for content in [json!(question), json!([{"type": "text", "text": question}])] {
        let reply = both(json!({"messages": [user(content)]}));
        assert!(text_of(&reply).contains("Paris"), "{reply}");
        assert_eq!(
            (&reply["stop_reason"], &reply["stop_sequence"]),
            (&json!("end_turn"), &Value::Null)
        );
    }
}

#[test]
fn pictures_are_answered_about() {
    let data = RED.split_once(',').unwrap().1;
    let source = json!({"type": "base64", "media_type": "image/png", "data": data});
    let content = json!([{"type": "image", "source": source}, {"type": "text", "text": "What colour is this image?"}]);
    let reply = both(json!({"messages": [user(content)]}));
    assert!(text_of(&reply).to_lowercase().contains("red"), "{reply}");
}

#[test]
fn a_forced_function_is_called_with_input_that_fits() {
    for choice in [
        json!({"type": "tool", "name": "get_weather"}),
        json!({"type": "any"}),
    ] {
        let messages = json!([user("What is the weather in Oslo?")]);
        let reply = both(
            json!({"messages": messages, "tools": [weather()], "tool_choice": choice, "max_tokens": 128}),
        );
        let call = block(&reply, "tool_use");
        assert_eq!(
            (&call["name"], &reply["stop_reason"]),
            (&json!("get_weather"), &json!("tool_use"))
        );
        assert!(
            call["input"]["city"].is_string() && call["input"].as_object().unwrap().len() == 1,
            "{call}"
        );
    }
}

#[test]
fn an_optional_function_is_called_when_it_is_called_for() {
    let ask = |choice: &str| {
        let messages = json!([user("What is the weather in Oslo right now?")]);
        both(
            json!({"messages": messages, "tools": [weather()], "tool_choice": {"type": choice}, "max_tokens": 96}),
        )
    };
    assert_eq!(block(&ask("auto"), "tool_use")["name"], "get_weather");
    assert!(!text_of(&ask("none")).is_empty());
}

#[test]
fn a_json_schema_is_kept_to() {
    let properties = json!({"zip": {"type": "integer"}, "city": {"type": "string", "maxLength": 20}, "kind": {"enum": ["big", "small"]}});
    let schema = json!({"type": "object", "properties": properties, "required": ["zip", "city", "kind"], "additionalProperties": false});
    let config = json!({"format": {"type": "json_schema", "schema": schema}});
    let messages = json!([user("Describe Paris as JSON.")]);
    let reply = both(json!({"messages": messages, "output_config": config, "max_tokens": 256}));
    let place: Value = serde_json::from_str(text_of(&reply)).unwrap();
    assert!(
        place["zip"].is_i64() && place["city"].is_string(),
        "{place}"
    );
    assert!(["big", "small"].contains(&place["kind"].as_str().unwrap()));
}

#[test]
fn the_cap_on_the_output_is_kept() {
    let reply =
        both(json!({"messages": [user("Write a long story about a dragon.")], "max_tokens": 5}));
    assert_eq!(
        (&reply["stop_reason"], &reply["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(5))
    );
}

#[test]
fn a_stop_text_ends_the_answer_and_is_reported() {
    let messages = json!([user("Count from one to five.")]);
    let whole = both(json!({ "messages": messages }));
    let word = text_of(&whole)
        .split_whitespace()
        .nth(2)
        .expect("a few words");
    let cut = both(json!({"messages": messages, "stop_sequences": [word, "never said"]}));
    assert_eq!(
        (&cut["stop_reason"], &cut["stop_sequence"]),
        (&json!("stop_sequence"), &json!(word))
    );
    let text = cut["content"][0]["text"].as_str().unwrap_or_default();
    assert_eq!(
        text,
        &text_of(&whole)[..text_of(&whole).find(word).unwrap()]
    );
}

#[test]
fn thoughts_that_were_asked_for_come_first() {
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    let messages = json!([user("What is larger, 9.8 or 9.11?")]);
    // The output limit has to be above the thinking budget, and thinking forbids temperature 0: a
    // schema keeps the reply short.
    let properties = json!({"larger": {"enum": ["9.8", "9.11"]}});
    let schema = json!({"type": "object", "properties": properties, "required": ["larger"], "additionalProperties": false});
    let config = json!({"format": {"type": "json_schema", "schema": schema}});
    let mut change =
        json!({"messages": messages, "thinking": thinking, "max_tokens": 2048, "temperature": 1});
    change["output_config"] = config;
    let server = GATEWAY.shared();
    let reply = server.post(MESSAGES, PATH, &body(change)).json();
    assert_eq!(
        (&reply["content"][0]["type"], &reply["content"][1]["type"]),
        (&json!("thinking"), &json!("text")),
        "{reply}"
    );
    assert!(
        reply["content"][0]["signature"].is_string(),
        "clients ask for the member: {reply}"
    );
}

#[test]
fn the_stream_is_framed_as_clients_expect() {
    let server = GATEWAY.shared();
    let response = server.post(
        MESSAGES,
        PATH,
        &body(json!({"messages": [user("Say hello.")], "stream": true})),
    );
    grammar::messages(&response).reply();
    let text = response.text();
    assert!(
        text.starts_with("event: message_start\ndata: {\"type\":\"message_start\","),
        "{text}"
    );
    assert!(
        text.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
        "{text}"
    );
    assert!(response.header("request-id").unwrap().starts_with("req_"));
}

#[test]
fn tokens_are_counted_as_they_are_billed() {
    let server = GATEWAY.shared();
    let change =
        json!({"system": "Be brief.", "messages": [user("What is the capital of France?")]});
    let mut counted = change.clone();
    counted["model"] = json!("msg-sonnet-5");
    let count = server.post(MESSAGES, "/v1/messages/count_tokens", &counted);
    assert_eq!(count.status, 200, "{}", count.text());
    assert_eq!(
        count.json(),
        json!({"input_tokens": both(change)["usage"]["input_tokens"]})
    );
}

#[test]
fn unknown_fields_and_beta_headers_are_accepted() {
    let server = GATEWAY.shared();
    let body = body(
        json!({"messages": [user("Say hello.")], "metadata": {"user_id": "u1"}, "a_field_of_tomorrow": 1}),
    );
    let request = Request::post("/v1/messages?beta=true", &body)
        .header("x-api-key", MESSAGES)
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", "a-beta-of-tomorrow");
    let response = request.send(server.address());
    assert_eq!(response.status, 200, "{}", response.text());
}
