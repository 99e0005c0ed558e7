//! Tools that upstreams host: their settings are relayed, and their additions to an answer are left
//! out for clients of other protocols.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Simulator};
use testkit::log;
use testkit::requests::{TEXT_PROTOCOLS, ask, path, protocol_name};
use testkit::{Gateway, Request, TEXT, changed};

use crate::GATEWAY;

/// A plain reply with this text, and with content that only its own protocol has.
fn reply(protocol: Protocol, text: &str) -> Value {
    match protocol {
        Protocol::Responses => {
            let part = json!({"type": "output_text", "text": text, "annotations": [{"type": "url_citation"}]});
            let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]});
            json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [
                {"type": "web_search_call", "id": "ws_1", "status": "completed"},
                {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AA=="},
                message,
            ]})
        }
        Protocol::Chat => {
            let message = json!({"role": "assistant", "content": text, "annotations": [{"type": "url_citation"}],
                "audio": {"id": "audio_1", "data": "AA=="}, "images": [{"type": "image_url"}]});
            json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
                {"index": 0, "message": message, "finish_reason": "stop"}]})
        }
        _ => json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            {"type": "text", "text": text, "citations": [{"type": "web_search_result_location"}]},
        ]}),
    }
}

/// The kinds of content that the log names.
fn left_out(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "hosted_tools,images,annotations",
        Protocol::Chat => "annotations,audio,images",
        _ => "hosted_tools,annotations",
    }
}

fn counted(gateway: &Gateway) -> f64 {
    gateway.sum("sluicegate_content_left_out_total")
}

/// Content for which the client's protocol has no word is named in the log, and counted by its
/// kind; a relayed answer has all of it.
#[test]
fn content_that_is_left_out_is_logged_and_counted() {
    for upstream in TEXT_PROTOCOLS {
        let simulator =
            Simulator::start(move |_| Play::json(200, &reply(upstream, "Hi."))).unwrap();
        let gateway = GATEWAY.before(&simulator, "", "");
        for client in TEXT_PROTOCOLS {
            for stream in [false, true] {
                let before = counted(&gateway);
                let body = ask(client, protocol_name(upstream), "Hello.", stream);
                let response = gateway.ask(client, &body);
                assert_eq!(response.status, 200, "{}", response.text());
                let is_relayed = client == upstream && !stream;
                let (names, expected) = match left_out(upstream) {
                    _ if is_relayed => (Value::Null, 0.0),
                    kinds => (json!(kinds), kinds.split(',').map(|_| 1.0).sum::<f64>()),
                };
                let line = log::line(&gateway, &response);
                assert_eq!(line["left_out"], names, "{upstream:?} {client:?} {stream}");
                let added = counted(&gateway) - before;
                assert!((added - expected).abs() < 0.5, "{added} {expected}");
            }
        }
    }
}

/// An answer with no content left for the client is a failure, unless it is relayed.
#[test]
fn an_answer_of_which_nothing_is_left_is_a_failure() {
    for upstream in TEXT_PROTOCOLS {
        let simulator = Simulator::start(move |_| Play::json(200, &reply(upstream, ""))).unwrap();
        let gateway = GATEWAY.before(&simulator, "", "");
        for client in TEXT_PROTOCOLS {
            let body = ask(client, protocol_name(upstream), "Hello.", false);
            let expected = if client == upstream { 200 } else { 502 };
            let response = gateway.ask(client, &body);
            assert_eq!(response.status, expected, "{upstream:?} {client:?}");
        }
    }
}

/// A Responses request with these members.
fn with(change: &Value) -> Value {
    let body = ask(Protocol::Responses, "responses", "A red square.", false);
    changed(body, change)
}

/// A hosted tool that makes images is for keys with the scope `images`. Cline offers it always, so the
/// other keys are served without it.
#[test]
fn a_tool_that_makes_images_is_left_out_for_keys_without_their_scope() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let image = json!({"type": "image_generation", "size": "1024x1024"});
    let function = json!({"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}});
    let allowed = |tools: Value| json!({"type": "allowed_tools", "mode": "auto", "tools": tools});
    let name = json!({"type": "function", "name": "f"});
    for (tools, choice, kept, kept_choice) in [
        (json!([image]), Value::Null, json!([]), Value::Null),
        (
            json!([image, function, image]),
            json!("required"),
            json!([function]),
            json!("required"),
        ),
        (
            json!([function, image]),
            json!("auto"),
            json!([function]),
            json!("auto"),
        ),
        (
            json!([image, function]),
            allowed(json!([name, image])),
            json!([function]),
            allowed(json!([name])),
        ),
    ] {
        let mut body = with(&json!({"tools": tools}));
        if !choice.is_null() {
            body["tool_choice"] = choice.clone();
        }
        assert_eq!(gateway.ask(Protocol::Responses, &body).status, 200);
        assert_eq!(simulator.requests().pop().unwrap().json()["tools"], tools);

        let response = gateway.post(TEXT, path(Protocol::Responses), &body);
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-sluicegate-dropped"), Some("tools[]"));
        let sent = simulator.requests().pop().unwrap().json();
        assert_eq!(
            (&sent["tools"], &sent["tool_choice"]),
            (&kept, &kept_choice)
        );
    }
}

/// The name of a type may be written with escapes.
#[test]
fn a_tool_that_makes_images_is_found_however_it_is_written() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let body = with(&json!({"tools": [{"type": "image_generation"}]})).to_string();
    let body = body.replace("image_generation", "im\\u0061ge_generation");
    let response = Request::post_bytes(path(Protocol::Responses), body.as_bytes())
        .header("content-type", "application/json")
        .bearer(TEXT)
        .send(gateway.address());
    assert_eq!(response.status, 200, "{}", response.text());
    let sent = simulator.requests().pop().unwrap().json();
    assert_eq!(sent["tools"], json!([]));
}

/// A request that leaves the model nothing but to make images is refused.
#[test]
fn a_forced_tool_that_makes_images_needs_their_scope() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let image = json!({"type": "image_generation"});
    let function = json!({"type": "function", "name": "f"});
    let allowed = json!({"type": "allowed_tools", "mode": "required", "tools": [image]});
    for (tools, choice) in [
        (json!([image]), json!("required")),
        (json!([image, function]), image.clone()),
        (json!([image, function]), allowed),
    ] {
        let body = with(&json!({"tools": tools, "tool_choice": choice}));
        let refused = gateway.post(TEXT, path(Protocol::Responses), &body);
        assert_eq!(refused.status, 403, "{}", refused.text());
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "insufficient_permissions", "{error}");
    }
    assert!(simulator.requests().is_empty());
}

/// Modalities that make images are for keys with the scope `images` as well:
/// <https://openrouter.ai/docs/features/multimodal/image-generation>.
#[test]
fn modalities_that_make_images_need_their_scope() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    for (protocol, modality) in [
        (Protocol::Chat, "image"),
        (Protocol::Chat, "IMAGE"),
        (Protocol::Responses, "image"),
    ] {
        let body = ask(protocol, protocol_name(protocol), "A red square.", false);
        let body = changed(body, &json!({"modalities": ["text", modality]}));
        let refused = gateway.post(TEXT, path(protocol), &body);
        assert_eq!(refused.status, 403, "{}", refused.text());
        assert!(simulator.requests().is_empty());
    }
    let body = ask(Protocol::Chat, "chat", "A red square.", false);
    let body = changed(body, &json!({"modalities": ["text"]}));
    assert_eq!(gateway.post(TEXT, path(Protocol::Chat), &body).status, 200);
}

/// The gateway checks the URLs of images and documents. URLs of hosted tools are for the upstream.
#[test]
fn urls_of_hosted_tools_are_relayed_as_they_are() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let server = json!({"type": "url", "name": "a", "url": "http://10.0.0.1/mcp"});
    let tool = json!({"type": "mcp", "server_label": "a", "server_url": "http://10.0.0.1/mcp"});
    for (protocol, name, value) in [
        (Protocol::Responses, "tools", json!([tool])),
        (Protocol::Messages, "mcp_servers", json!([server])),
    ] {
        let body = ask(protocol, protocol_name(protocol), "Hello.", false);
        let body = changed(body, &json!({ name: value }));
        let response = gateway.ask(protocol, &body);
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(simulator.requests().pop().unwrap().json()[name], value);
    }
}
