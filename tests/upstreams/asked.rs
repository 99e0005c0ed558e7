//! The fields of the requests that upstreams get, and which of them are lost.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Simulator, honest};
use testkit::requests::{ask, path, request};
use testkit::{CLIENT_KEY, Connection, Gateway, Request};

use crate::GATEWAY;

/// Sends a request, and returns the one that the upstream gets.
fn asked(gateway: &Gateway, simulator: &Simulator, client: Protocol, body: &Value) -> Value {
    let response = gateway.ask(client, body);
    assert_eq!(response.status, 200, "{}", response.text());
    simulator.requests().pop().unwrap().json()
}

/// A vendor that stores answers by default stores none, unless the client asks for it:
/// <https://platform.openai.com/docs/api-reference/responses/create>
#[test]
fn a_relayed_response_is_only_stored_if_the_client_asks_for_it() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    for (given, expected) in [
        (None, json!(false)),
        (Some(json!(null)), json!(false)),
        (Some(json!(false)), json!(false)),
        (Some(json!(true)), json!(true)),
    ] {
        let mut body = ask(Protocol::Responses, "responses", "Hello.", false);
        body.as_object_mut().unwrap().remove("store");
        if let Some(given) = given {
            body["store"] = given;
        }
        let asked = asked(&gateway, &simulator, Protocol::Responses, &body);
        assert_eq!(asked["store"], expected, "{body}");
    }
}

/// Functions in the form of Chat Completions are accepted, and an upstream may not read them:
/// <https://platform.openai.com/docs/guides/function-calling>
#[test]
fn functions_in_the_form_of_chat_are_sent_in_the_form_of_responses() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let schema = json!({"type": "object", "properties": {}});
    let nested = json!({"type": "function", "function": {"name": "f", "parameters": schema}});
    let flat = json!({"type": "function", "name": "g", "parameters": schema});
    let allowed = |tool: Value| json!({"type": "allowed_tools", "mode": "auto", "tools": [tool]});
    let (nested_name, name) = (
        json!({"type": "function", "function": {"name": "f"}}),
        json!({"type": "function", "name": "f"}),
    );
    for (choice, expected) in [
        (nested_name.clone(), name.clone()),
        (allowed(nested_name), allowed(name)),
    ] {
        let mut body = ask(Protocol::Responses, "responses", "Hello.", false);
        body["tools"] = json!([flat, nested]);
        body["tool_choice"] = choice;
        let asked = asked(&gateway, &simulator, Protocol::Responses, &body);
        assert_eq!(asked["tool_choice"], expected);
        assert_eq!(
            asked["tools"],
            json!([
                flat,
                {"type": "function", "name": "f", "parameters": schema, "description": null, "strict": null},
            ])
        );
    }
}

/// A relayed stream is requested with its usage, and its other options stay:
/// <https://platform.openai.com/docs/api-reference/chat/create>
#[test]
fn a_relayed_stream_of_chat_is_requested_with_its_usage() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    for (given, expected) in [
        (None, json!({"include_usage": true})),
        (Some(json!(null)), json!({"include_usage": true})),
        (Some(json!({})), json!({"include_usage": true})),
        (
            Some(json!({"include_usage": false, "a": 1})),
            json!({"include_usage": true, "a": 1}),
        ),
        (
            Some(json!({"include_obfuscation": false})),
            json!({"include_usage": true, "include_obfuscation": false}),
        ),
    ] {
        let mut body = ask(Protocol::Chat, "chat", "Hello.", true);
        body.as_object_mut().unwrap().remove("stream_options");
        if let Some(given) = given {
            body["stream_options"] = given;
        }
        let asked = asked(&gateway, &simulator, Protocol::Chat, &body);
        assert_eq!(asked["stream_options"], expected, "{body}");
    }
    let plain = ask(Protocol::Chat, "chat", "Hello.", false);
    let asked = asked(&gateway, &simulator, Protocol::Chat, &plain);
    assert_eq!(asked.get("stream_options"), None);
}

/// The fields that are lost are known, and named, before the target begins to answer.
#[test]
fn dropped_fields_are_named_before_a_slow_target_answers() {
    let simulator =
        Simulator::start(|request| Play::new().gate().then(honest::answer(request))).unwrap();
    let gateway = GATEWAY.before(&simulator, "keep_alive = \"20ms\"", "");
    let mut body = ask(Protocol::Chat, "messages", "Hello.", true);
    body["seed"] = json!(7);
    let mut connection = Connection::open(gateway.address());
    connection.send(request(Protocol::Chat, &body).bytes());
    let response = connection.response_after_head(|| simulator.release());
    assert_eq!(
        (response.status, response.header("x-sluicegate-dropped")),
        (200, Some("seed"))
    );
    let sent = simulator.requests().pop().unwrap();
    insta::assert_snapshot!(String::from_utf8_lossy(&sent.body), @r#"{"model":"their-model","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hello."}]}],"stream":true}"#);
}

/// Posts these bytes with a header of the client, and returns the bytes that the upstream gets.
fn relayed(protocol: Protocol, body: &str) -> String {
    let simulator = Simulator::honest().unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    let request = Request::post_bytes(path(protocol), body.as_bytes());
    let response = request.bearer(CLIENT_KEY).send(gateway.address());
    assert_eq!(response.status, 200, "{}", response.text());
    let received = simulator.requests().pop().unwrap();
    String::from_utf8(received.body.to_vec()).unwrap()
}

/// A relayed request is sent as the client wrote it, with additions that the vendor's documentation
/// asks for: `store`, <https://platform.openai.com/docs/api-reference/responses/create>, and
/// `stream_options`, <https://platform.openai.com/docs/api-reference/chat/create>. Items of a type
/// that is newer than the gateway are for the vendor to judge.
#[test]
fn relayed_requests_are_sent_byte_for_byte() {
    let input = r#"{"model":"responses", "input":[{"role":"user","content":"Hi."}]}"#;
    insta::assert_snapshot!(relayed(Protocol::Responses, input), @r#"{"store":false,"model":"their-model", "input":[{"role":"user","content":"Hi."}]}"#);
    let newer =
        r#"{"model":"responses", "store":false, "input":[{"type":"item_of_tomorrow","x":1}]}"#;
    insta::assert_snapshot!(relayed(Protocol::Responses, newer), @r#"{"model":"their-model", "store":false, "input":[{"type":"item_of_tomorrow","x":1}]}"#);
    let stream = r#"{"model":"chat", "stream":true, "messages":[{"role":"user","content":"Hi."}]}"#;
    insta::assert_snapshot!(relayed(Protocol::Chat, stream), @r#"{"stream_options":{"include_usage":true},"model":"their-model", "stream":true, "messages":[{"role":"user","content":"Hi."}]}"#);
}

/// Of a long request that is only relayed no message is built: it is sent as it is all the same.
#[test]
fn a_long_relayed_request_is_sent_byte_for_byte() {
    let text = r#"Caf\u00e9, \"said\" the \\ fox.\n"#.repeat(1_000);
    let request = |model: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"{text}"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c1","content":[{{"type":"text","text":"{text}"}}]}}], "model" : "{model}"}}"#
        )
    };
    assert_eq!(
        relayed(Protocol::Chat, &request("chat")),
        request("their-model")
    );
}

/// A long request is refused for the same reasons as a short one, and for all of them.
#[test]
fn a_long_request_is_refused_for_all_its_violations() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let long = "x".repeat(20_000);
    let valid = json!({"role": "user", "content": long});
    let invalid = json!({"role": "user", "content": 7});
    for (message, paths) in [
        (&valid, &["'temperature'", "'top_p'"][..]),
        (&invalid, &["'messages[1].content'"]),
    ] {
        let mut body = ask(Protocol::Chat, "chat", "Hello.", false);
        body["messages"] = json!([valid, message]);
        body["temperature"] = json!(9);
        body["top_p"] = json!(9);
        let response = gateway.ask(Protocol::Chat, &body);
        assert_eq!(response.status, 400);
        for path in paths {
            assert!(response.text().contains(path), "{}", response.text());
        }
    }
    assert_eq!(simulator.requests().len(), 0);
}

/// The headers in which a client asks for something reach an upstream of its own protocol:
/// <https://docs.anthropic.com/en/api/beta-headers>.
#[test]
fn a_relayed_request_keeps_its_beta_header() {
    let simulator = Simulator::honest().unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    let body = ask(Protocol::Messages, "messages", "Hi.", false);
    let request = request(Protocol::Messages, &body).header("anthropic-beta", "one");
    assert_eq!(request.send(gateway.address()).status, 200);
    let received = simulator.requests().pop().unwrap();
    assert_eq!(received.header("anthropic-beta"), Some("one"));
}
