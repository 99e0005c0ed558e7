//! `POST /v1/chat/completions` on the real model, streamed and not:
//! <https://platform.openai.com/docs/api-reference/chat>.

use serde_json::{Value, json};
use testkit::{Response, TEXT, changed};

use crate::chain::GATEWAY;

const PATH: &str = "/v1/chat/completions";
/// 16 x 16 pixels of one red.
pub(crate) const RED: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg==";

fn body(change: Value) -> Value {
    let base = json!({"model": "alt-flash", "reasoning_effort": "none", "temperature": 0, "max_tokens": 48});
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
    streamed["stream_options"] = json!({"include_usage": true});
    let streamed = grammar::chat(&server.post(TEXT, PATH, &streamed)).reply();
    let (plain, streamed) = (
        nameless(plain.json()),
        nameless(serde_json::to_value(streamed).unwrap()),
    );
    assert_eq!(plain, streamed, "the plain reply is the fold of the stream");
    assert_eq!(plain["object"], "chat.completion");
    let usage = &plain["usage"];
    let sum =
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], sum);
    assert_eq!(usage.as_object().unwrap().len(), 3, "no breakdown");
    plain
}

/// Removes the values that differ between replies: ids and times.
fn nameless(mut reply: Value) -> Value {
    reply["id"].take();
    reply["created"].take();
    for choice in reply["choices"].as_array_mut().unwrap() {
        // Indexing an absent member would insert null.
        let calls = choice["message"]
            .get_mut("tool_calls")
            .and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            call["id"].take();
        }
    }
    reply
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub(crate) fn text_of(reply: &Value) -> &str {
    reply["choices"][0]["message"]["content"]
        .as_str()
        .expect("text")
}

pub(crate) fn weather() -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false});
    json!({"type": "function", "function": {"name": "get_weather", "description": "Look up the weather of a city.", "parameters": parameters}})
}

#[test]
fn plain_text() {
    let reply = both(json!({"messages": [user("What is the capital of France?")]}));
    assert!(text_of(&reply).contains("Paris"), "{reply}");
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
}

#[test]
fn pictures_are_answered_about() {
    let picture = |url: Value| json!({"type": "image_url", "image_url": url});
    for url in [json!({"url": RED, "detail": "low"}), json!(RED)] {
        let content = json!([{"type": "text", "text": "What colour is this image?"}, picture(url)]);
        let reply = both(json!({"messages": [{"role": "user", "content": content}]}));
        assert!(text_of(&reply).to_lowercase().contains("red"), "{reply}");
    }
}

#[test]
fn a_forced_function_is_called_with_arguments_that_fit() {
    for choice in [
        json!({"type": "function", "function": {"name": "get_weather"}}),
        json!("required"),
    ] {
        let reply = both(
            json!({"messages": [user("What is the weather in Oslo?")], "tools": [weather()], "tool_choice": choice, "max_tokens": 128}),
        );
        let message = &reply["choices"][0]["message"];
        let call = &message["tool_calls"][0];
        assert_eq!(
            (
                &call["function"]["name"],
                &reply["choices"][0]["finish_reason"]
            ),
            (&json!("get_weather"), &json!("tool_calls"))
        );
        let arguments: Value =
            serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        assert!(
            arguments["city"].is_string() && arguments.as_object().unwrap().len() == 1,
            "{arguments}"
        );
        assert_eq!(message["content"], Value::Null);
    }
}

#[test]
fn an_optional_function_is_a_call_that_fits_or_text() {
    let ask = |text: &str, choice: &str| {
        both(
            json!({"messages": [user(text)], "tools": [weather()], "tool_choice": choice, "max_tokens": 96}),
        )
    };
    let called = ask("What is the weather in Oslo right now?", "auto");
    let call = &called["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "get_weather", "{called}");
    let none = ask("What is the weather in Oslo right now?", "none");
    assert!(
        none["choices"][0]["message"].get("tool_calls").is_none(),
        "{none}"
    );
}

#[test]
fn json_mode_gives_an_object() {
    let reply = both(
        json!({"messages": [user("Give me a JSON object with the name and age of a person.")], "response_format": {"type": "json_object"}, "max_tokens": 256}),
    );
    assert_eq!(reply["choices"][0]["finish_reason"], "stop", "{reply}");
    assert!(
        serde_json::from_str::<Value>(text_of(&reply))
            .unwrap()
            .is_object()
    );
}

#[test]
fn a_json_schema_is_kept_to() {
    let schema = json!({"type": "object", "properties": {"zip": {"type": "integer"}, "city": {"type": "string", "maxLength": 20}, "kind": {"enum": ["big", "small"]}}, "required": ["zip", "city", "kind"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "place", "strict": true, "schema": schema}});
    let reply = both(
        json!({"messages": [user("Describe Paris as JSON.")], "response_format": format, "max_tokens": 256}),
    );
    let place: Value = serde_json::from_str(text_of(&reply)).unwrap();
    assert!(
        place["zip"].is_i64() && place["city"].is_string(),
        "{place}"
    );
    assert!(["big", "small"].contains(&place["kind"].as_str().unwrap()));
    let order: Vec<_> = place.as_object().unwrap().keys().collect();
    assert_eq!(order, ["zip", "city", "kind"], "in the order of the schema");
}

#[test]
fn the_cap_on_the_output_is_kept() {
    for name in ["max_tokens", "max_completion_tokens"] {
        let mut change = json!({"messages": [user("Write a long story about a dragon.")]});
        change["max_tokens"] = Value::Null;
        change[name] = json!(5);
        let reply = both(change);
        assert_eq!(
            (
                &reply["choices"][0]["finish_reason"],
                &reply["usage"]["completion_tokens"]
            ),
            (&json!("length"), &json!(5))
        );
    }
}

#[test]
fn a_stop_text_ends_the_answer_and_is_no_part_of_it() {
    let whole = both(json!({"messages": [user("Count from one to five.")]}));
    let text = text_of(&whole);
    let word = text.split_whitespace().nth(2).expect("a few words");
    let cut =
        both(json!({"messages": [user("Count from one to five.")], "stop": [word, "never said"]}));
    assert_eq!(text_of(&cut), &text[..text.find(word).unwrap()]);
    assert_eq!(cut["choices"][0]["finish_reason"], "stop");
}

#[test]
fn thoughts_come_before_the_answer_and_are_counted() {
    let reply = both(
        json!({"messages": [user("What is larger, 9.8 or 9.11?")], "reasoning_effort": "low", "max_tokens": 96}),
    );
    let message = &reply["choices"][0]["message"];
    assert!(
        !message["reasoning_content"]
            .as_str()
            .expect("thoughts")
            .trim()
            .is_empty(),
        "{reply}"
    );
    assert!(!text_of(&reply).trim().is_empty());
    let unasked =
        both(json!({"messages": [user("Say hello.")], "reasoning_effort": null, "max_tokens": 96}));
    assert!(
        unasked["choices"][0]["message"]["reasoning_content"].is_string(),
        "alt-flash thinks by itself: {unasked}"
    );
}

#[test]
fn the_stream_is_framed_as_clients_expect() {
    let server = GATEWAY.shared();
    let ask = |options: Value| {
        let mut body = body(json!({"messages": [user("Say hello.")], "stream": true}));
        body["stream_options"] = options;
        server.post(TEXT, PATH, &body)
    };
    let silent = ask(Value::Null);
    check_frame(&silent);
    assert!(
        !silent.text().contains("\"usage\""),
        "no usage unless requested"
    );
    let response = ask(json!({"include_usage": true}));
    check_frame(&response);
    let data = testkit::events::data(&response);
    let last: Value = serde_json::from_str(&data[data.len() - 2]).unwrap();
    assert!(
        last["choices"].as_array().unwrap().is_empty() && last["usage"]["total_tokens"].is_u64()
    );
}

fn check_frame(response: &Response) {
    grammar::chat(response).reply();
    assert!(response.text().ends_with("data: [DONE]\n\n") && !response.text().contains("event:"));
    assert_eq!(
        (
            response.header("cache-control"),
            response.header("x-accel-buffering")
        ),
        (Some("no-cache"), Some("no"))
    );
    assert!(response.header("x-request-id").unwrap().starts_with("req_"));
}
