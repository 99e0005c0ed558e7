//! Tests of neutral requests encoded for each upstream protocol.

use engine::{EngineError, TextRequest};
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_translate::outbound::encode::{self, DroppedField, Settings};
use vendor::Protocol::{self, Chat, Messages, Responses};
use wire::Violations;

use crate::clients::{SETTINGS, neutral, read_chat, read_messages, read_responses, requests};

/// Returns the neutral form of a valid client request.
fn request(client: Protocol, body: &Value) -> TextRequest {
    neutral(client, body.to_string().as_bytes())
        .unwrap()
        .unwrap()
        .request
}

fn encode_for(client: Protocol, upstream: Protocol, body: &Value) -> (Value, Vec<DroppedField>) {
    let result = encode::request(upstream, &request(client, body), &SETTINGS).unwrap();
    (
        serde_json::from_slice(&result.body).unwrap(),
        result.dropped,
    )
}

#[track_caller]
fn assert_refused(client: Protocol, upstream: Protocol, body: &Value, expected: &str) {
    match encode::request(upstream, &request(client, body), &SETTINGS) {
        Err(EngineError::Unsupported { reason, .. }) => {
            assert!(reason.contains(expected), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

/// Returns a Chat Completions request with these messages.
fn chat(messages: Value) -> Value {
    json!({ "model": "m", "messages": messages })
}

/// Validates a body as an upstream would.
fn validate(upstream: Protocol, body: &[u8]) -> Result<(), Violations> {
    match upstream {
        Responses => read_responses(body).map(drop),
        Chat => read_chat(body).map(drop),
        Messages => read_messages(body).map(drop),
    }
}

#[track_caller]
fn assert_fixture(fixture: &str, client: Protocol, upstream: Protocol) {
    let fixture: Value = serde_json::from_str(fixture).unwrap();
    let (mut encoded, dropped) = encode_for(client, upstream, &fixture["input"]);
    if upstream == Messages {
        // The type `custom` of a Messages tool is optional.
        let tools = encoded["tools"].as_array_mut().unwrap().iter_mut();
        tools.for_each(|tool| {
            assert_eq!(
                tool.as_object_mut().unwrap().shift_remove("type"),
                Some(json!("custom"))
            );
        });
    }
    assert_eq!((encoded, dropped), (fixture["output"].clone(), Vec::new()));
}

#[test]
fn responses_to_chat() {
    assert_fixture(
        include_str!("fixtures/translate-responses-to-chat.json"),
        Responses,
        Chat,
    );
}

#[test]
fn responses_to_messages() {
    assert_fixture(
        include_str!("fixtures/translate-responses-to-messages.json"),
        Responses,
        Messages,
    );
}

#[test]
fn messages_to_chat() {
    assert_fixture(
        include_str!("fixtures/translate-messages-to-chat.json"),
        Messages,
        Chat,
    );
}

#[test]
fn a_stream_is_asked_for_with_its_usage() {
    let request = request(Chat, &chat(json!([{ "role": "user", "content": "Hi." }])));
    let streams = |upstream| {
        let result = encode::request(
            upstream,
            &request,
            &Settings {
                stream: true,
                ..SETTINGS
            },
        )
        .unwrap();
        serde_json::from_slice::<Value>(&result.body).unwrap()
    };
    let body = streams(Chat);
    assert_eq!(
        (&body["stream"], &body["stream_options"]),
        (&json!(true), &json!({ "include_usage": true }))
    );
    for upstream in [Responses, Messages] {
        let body = streams(upstream);
        assert_eq!(
            (&body["stream"], body.get("stream_options")),
            (&json!(true), None)
        );
    }
}

#[test]
fn ids_stay_together_when_they_are_encoded() {
    let body = chat(json!([
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "tool_calls": [
            { "id": "odd id", "type": "function", "function": { "name": "f", "arguments": " " } } ] },
        { "role": "tool", "tool_call_id": "odd id", "content": "4" },
    ]));
    let (encoded, _) = encode_for(Chat, Messages, &body);
    let (call, result) = (
        &encoded["messages"][1]["content"][0],
        &encoded["messages"][2]["content"][0],
    );
    assert_eq!(call["id"], result["tool_use_id"]);
    assert_eq!(
        (&call["id"], &call["input"]),
        (&json!("sgc_b2RkIGlk"), &json!({}))
    );
    let (encoded, _) = encode_for(Chat, Responses, &body);
    assert_eq!(encoded["input"][1]["call_id"], "odd id");
    assert_eq!(encoded["input"][2]["call_id"], "odd id");
}

#[test]
fn neighbours_of_one_side_become_one_message() {
    let body = chat(json!([
        { "role": "user", "content": "One." },
        { "role": "user", "content": " " },
        { "role": "user", "content": "Two." },
        { "role": "assistant", "content": "Three." }, { "role": "assistant", "content": "Four." },
        { "role": "user", "content": "Five." },
    ]));
    let (encoded, dropped) = encode_for(Chat, Messages, &body);
    let text = |text: &str| json!({ "type": "text", "text": text });
    let expected = json!([
        { "role": "user", "content": [text("One."), text("Two.")] },
        { "role": "assistant", "content": [text("Three."), text("Four.")] },
        { "role": "user", "content": [text("Five.")] },
    ]);
    assert_eq!((&encoded["messages"], dropped.len()), (&expected, 0));
    let (encoded, _) = encode_for(Chat, Chat, &body);
    assert_eq!(
        encoded["messages"][3],
        json!({ "role": "assistant", "content": "Three.Four." })
    );
}

#[test]
fn results_come_before_the_text_of_the_user() {
    let call =
        json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let body = chat(json!([
        { "role": "user", "content": "Hi." }, { "role": "assistant", "tool_calls": [call] },
        { "role": "user", "content": "Wait." }, { "role": "tool", "tool_call_id": "c", "content": "4" },
    ]));
    let (encoded, _) = encode_for(Chat, Messages, &body);
    let kinds: Vec<_> = encoded["messages"][2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(kinds, ["tool_result", "text"]);
}

#[test]
fn instructions_in_the_midst_keep_their_place_or_lose_it() {
    let body = chat(json!([
        { "role": "system", "content": "A." },
        { "role": "user", "content": "Hi." },
        { "role": "developer", "content": "B." },
    ]));
    let (encoded, dropped) = encode_for(Chat, Messages, &body);
    assert_eq!(
        (&encoded["system"], dropped),
        (
            &json!([{ "type": "text", "text": "A." }, { "type": "text", "text": "B." }]),
            vec![DroppedField::SystemPosition]
        )
    );
    let (encoded, dropped) = encode_for(Chat, Responses, &body);
    assert_eq!(
        (&encoded["instructions"], dropped),
        (&json!("A."), Vec::new())
    );
    assert_eq!(
        encoded["input"][1],
        json!({ "type": "message", "role": "system", "content": [{ "type": "input_text", "text": "B." }] })
    );
}

/// "messages: at least one message is required", Claude:
/// <https://github.com/langchain-ai/langchain/issues/30764>
#[test]
fn instructions_alone_are_a_message_of_the_user() {
    let system = json!({ "role": "system", "content": "Write a haiku." });
    let blank = json!({ "role": "user", "content": " " });
    for messages in [json!([system]), json!([system, blank])] {
        let (encoded, dropped) = encode_for(Chat, Messages, &chat(messages));
        let owed =
            json!([{ "role": "user", "content": [{ "type": "text", "text": "Write a haiku." }] }]);
        assert_eq!((&encoded["messages"], encoded.get("system")), (&owed, None));
        assert_eq!(dropped, [DroppedField::SystemPosition]);
    }
}

/// "Response input messages must contain the word 'json' in some form to use 'text.format' of type
/// 'json_object'", and instructions are none: <https://github.com/Soju06/codex-lb/issues/730>
#[test]
fn instructions_that_ask_for_json_stay_in_responses_input() {
    let mut body = chat(json!([
        { "role": "system", "content": "Answer in JSON." },
        { "role": "user", "content": "Name three trees." },
    ]));
    let input = |encoded: &Value| encoded["input"][0]["content"][0]["text"].clone();
    let (encoded, _) = encode_for(Chat, Responses, &body);
    assert_eq!(
        (&encoded["instructions"], input(&encoded)),
        (&json!("Answer in JSON."), json!("Name three trees."))
    );
    body["response_format"] = json!({ "type": "json_object" });
    let (encoded, dropped) = encode_for(Chat, Responses, &body);
    assert_eq!(encoded["text"]["format"]["type"], "json_object");
    assert_eq!(
        (encoded.get("instructions"), &encoded["input"][0]["role"]),
        (None, &json!("system"))
    );
    assert_eq!(
        (input(&encoded), dropped),
        (json!("Answer in JSON."), vec![])
    );
}

#[test]
fn a_failed_result_is_marked_as_such() {
    let body = json!({ "model": "m", "max_tokens": 9, "messages": [
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "c", "name": "f", "input": {} }] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "c", "content": "No.", "is_error": true },
        ] },
    ] });
    assert_eq!(
        encode_for(Messages, Chat, &body).0["messages"][2]["content"],
        "[error] No."
    );
    assert_eq!(
        encode_for(Messages, Responses, &body).0["input"][2]["output"],
        "[error] No."
    );
    assert_eq!(
        encode_for(Messages, Messages, &body).0["messages"][2],
        body["messages"][2]
    );
}

#[test]
fn thoughts_go_where_they_are_taken() {
    let thinks = |call: bool| {
        let call =
            call.then(|| json!([{ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } }]));
        chat(json!([
            { "role": "user", "content": "Hi." },
            { "role": "assistant", "content": "Hello.", "reasoning_content": "Hm.", "tool_calls": call },
        ]))
    };
    let (encoded, dropped) = encode_for(Chat, Chat, &thinks(true));
    assert_eq!(
        (&encoded["messages"][1]["reasoning_content"], dropped),
        (&json!("Hm."), vec![DroppedField::ToolResult])
    );
    let (encoded, dropped) = encode_for(Chat, Chat, &thinks(false));
    assert_eq!(
        (encoded["messages"][1].get("reasoning_content"), dropped),
        (None, vec![DroppedField::Reasoning])
    );
    let (encoded, dropped) = encode_for(Chat, Messages, &thinks(true));
    assert_eq!(
        (&encoded["messages"][1]["content"][0]["type"], dropped),
        (
            &json!("text"),
            vec![DroppedField::ToolResult, DroppedField::Reasoning]
        )
    );
    let (encoded, dropped) = encode_for(Chat, Responses, &thinks(false));
    assert_eq!(
        (&encoded["input"][1]["type"], dropped),
        (&json!("message"), vec![DroppedField::Reasoning])
    );
}

#[test]
fn reasoning_without_text_is_not_written_as_empty() {
    let body = json!({ "model": "m", "input": [
        { "role": "user", "content": "Hi." },
        { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed" },
        { "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c", "output": "1" },
    ] });
    let (encoded, _) = encode_for(Responses, Chat, &body);
    let turn = &encoded["messages"][1];
    assert_eq!(
        (&turn["tool_calls"][0]["id"], turn.get("reasoning_content")),
        (&json!("c"), None),
        "{encoded}"
    );
}

#[test]
fn effort_and_budget_mean_each_other() {
    let effort = |effort: &str| {
        let body = json!({ "model": "m", "input": [{ "role": "user", "content": "Hi." }], "reasoning": { "effort": effort } });
        let (encoded, _) = encode_for(Responses, Messages, &body);
        (
            encoded["thinking"]["type"].clone(),
            encoded["output_config"]["effort"].clone(),
        )
    };
    assert_eq!(effort("minimal"), (json!("adaptive"), json!("low")));
    assert_eq!(effort("xhigh"), (json!("adaptive"), json!("xhigh")));
    assert_eq!(effort("none"), (json!("disabled"), Value::Null));
    let budget = |tokens: u64| {
        let body = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "Hi." }],
            "thinking": { "type": "enabled", "budget_tokens": tokens, "display": "summarized" } });
        let (chat, responses) = (
            encode_for(Messages, Chat, &body).0,
            encode_for(Messages, Responses, &body).0,
        );
        assert_eq!(
            responses["reasoning"],
            json!({ "effort": chat["reasoning_effort"], "summary": "auto" })
        );
        chat["reasoning_effort"].clone()
    };
    assert_eq!([1024, 4096, 16384].map(budget), ["low", "medium", "high"]);
}

#[test]
fn sampling_is_bent_or_left_out() {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi." }], "temperature": 1.5, "top_p": 0.5 });
    let (encoded, dropped) = encode_for(Chat, Messages, &body);
    assert_eq!(
        (&encoded["temperature"], &encoded["top_p"], dropped),
        (&json!(1.0), &json!(0.5), vec![DroppedField::Temperature])
    );
    let result = encode::request(
        Messages,
        &request(Chat, &body),
        &Settings {
            sampling: false,
            ..SETTINGS
        },
    )
    .unwrap();
    let encoded: Value = serde_json::from_slice(&result.body).unwrap();
    assert_eq!(
        (
            encoded.get("temperature"),
            encoded.get("top_p"),
            &encoded["max_tokens"]
        ),
        (None, None, &json!(4096))
    );
    assert_eq!(
        result.dropped,
        [DroppedField::Temperature, DroppedField::TopP]
    );
}

/// Programs call JPEGs `image/jpg`; Messages servers accept the registered name only:
/// <https://docs.anthropic.com/en/docs/build-with-claude/vision>.
#[test]
fn pictures_have_the_registered_name_of_their_type() {
    for (written, sent) in [
        ("image/jpg", "image/jpeg"),
        ("IMAGE/PNG", "image/png"),
        ("image/webp;name=a.webp", "image/webp"),
    ] {
        let url = format!("data:{written};base64,aGk=");
        let body = chat(
            json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": url } }] }]),
        );
        let source = &encode_for(Chat, Messages, &body).0["messages"][0]["content"][0]["source"];
        assert_eq!(source["media_type"], sent);
        let part = &encode_for(Chat, Responses, &body).0["input"][0]["content"][0];
        assert_eq!(part["image_url"], format!("data:{sent};base64,aGk="));
    }
}

#[test]
fn a_document_without_data_is_refused_for_the_missing_field() {
    let body = chat(json!([{ "role": "user", "content": [{ "type": "file", "file": {} }] }]));
    let error = neutral(Chat, body.to_string().as_bytes())
        .unwrap()
        .unwrap_err();
    let field = "messages[0].content[0].file.file_data";
    assert_eq!(error.param.as_deref(), Some(field));
    assert_eq!(
        error.message,
        format!("Missing required parameter: '{field}'.")
    );
}

#[test]
fn documents_are_pdf_or_text_for_messages() {
    let file = |url: &str| {
        chat(
            json!([{ "role": "user", "content": [{ "type": "file", "file": { "filename": "a", "file_data": url } }] }]),
        )
    };
    let source = |url| {
        encode_for(Chat, Messages, &file(url)).0["messages"][0]["content"][0]["source"].clone()
    };
    let text = json!({ "type": "text", "media_type": "text/plain", "data": "Hi." });
    assert_eq!(source("data:text/markdown;charset=utf-8;base64,SGku"), text);
    assert_eq!(
        source("data:application/PDF;base64,JVBERg==")["media_type"],
        "application/pdf"
    );
    for odd in [
        "data:image/png;base64,JVBERg==",
        "data:text/plain;base64,/w==",
    ] {
        assert_refused(Chat, Messages, &file(odd), "send PDF or UTF-8 text");
    }
    for upstream in [Messages, Responses] {
        assert_refused(
            Chat,
            upstream,
            &file("data:application/pdf;base64,=1"),
            "not base64",
        );
    }
}

#[test]
fn inexpressible_required_content_is_rejected() {
    let user = json!({ "role": "user", "content": "Hi." });
    assert_refused(
        Chat,
        Messages,
        &chat(json!([{ "role": "user", "content": " " }])),
        "nothing",
    );
    assert_refused(
        Chat,
        Messages,
        &chat(json!([{ "role": "system", "content": " " }])),
        "nothing",
    );
    let stops = json!({ "model": "m", "max_tokens": 9, "messages": [user], "stop_sequences": vec!["a"; 65] });
    assert_refused(Messages, Chat, &stops, "at most 64");
    let hosted = json!({ "model": "m", "max_tokens": 9, "messages": [user],
        "tools": [{ "type": "web_search_20250305", "name": "web_search" }],
        "tool_choice": { "type": "tool", "name": "web_search" } });
    assert_refused(Messages, Chat, &hosted, "tool_choice");
    let mut any = hosted;
    any["tool_choice"] = json!({ "type": "any" });
    assert_refused(Messages, Chat, &any, "Only functions can be called");
}

proptest! {
    #[test]
    fn an_encoded_request_satisfies_the_rules_of_its_protocol(
        (client, body) in prop::sample::select(Protocol::ALL.to_vec())
            .prop_flat_map(|client| (Just(client), strategies::changed(requests(client)))),
        stream in any::<bool>(),
        sampling in any::<bool>(),
    ) {
        let Some(Ok(inbound)) = neutral(client, body.to_string().as_bytes()) else { return Ok(()) };
        for upstream in Protocol::ALL {
            match encode::request(upstream, &inbound.request, &Settings { stream, sampling, ..SETTINGS }) {
                Ok(result) => prop_assert_eq!(validate(upstream, &result.body), Ok(()), "{} {:?}", body, upstream),
                Err(EngineError::Unsupported { reason, .. }) => prop_assert!(!reason.is_empty()),
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }
}
