//! The seals of relayed requests.

use serde_json::{Value, json};
use sluicegate_relay::seals::{Marker, Openable, leave_out_foreign};
use sluicegate_relay::{Guard, RelayProtocol as _};
use vendor::Protocol;
use vendor::envelope::{Envelope, Sealed};
use wire::Splice;

use Protocol::{Chat, Messages, Responses};

/// The target that gets a request.
#[derive(Clone, Copy)]
enum Target {
    /// The first one.
    First,
    /// One of another account, after the first one has failed.
    Second,
    /// The first one, which takes thinking without a signature.
    Local,
}

use Target::{First, Local, Second};

/// Returns the request that the target gets, and the names of what is left out.
fn relayed(protocol: Protocol, target: Target, body: &Value) -> (Value, Vec<&'static str>) {
    let own = Envelope::new(b"own");
    let mut first = match target {
        First | Local => None,
        Second => Some(Envelope::new(b"first").group()),
    };
    let openable = Openable::at(&own, &mut first, matches!(target, Local));
    let body = body.to_string();
    let mut splice = Splice::new(body.as_bytes());
    let lost = leave_out_foreign(protocol, &openable, &mut splice);
    assert!(lost.is_empty() || !splice.is_empty());
    (serde_json::from_slice(&splice.to_vec()).unwrap(), lost)
}

fn envelope() -> String {
    let signature = "c2VhbA==".to_owned();
    let text = "Hm.".to_owned();
    Envelope::new(b"secret").seal(&Sealed::Thinking { signature, text })
}

fn items(reasoning: &[Value]) -> Value {
    let message = |role| json!({"role": role, "content": "Hi."});
    let items = [&[message("user")], reasoning, &[message("assistant")]].concat();
    json!({"model": "m", "input": items})
}

/// An item of a foreign server: "Item with id not found", or `invalid_encrypted_content`.
#[test]
fn reasoning_items_of_the_gateway_do_not_reach_a_server() {
    let made = json!({"type": "reasoning", "id": "rs_sg_0702", "summary": []});
    let sealed = json!({"type": "reasoning", "id": "rs_sg_0703", "summary": [],
        "encrypted_content": envelope()});
    let request = items(&[made, sealed]);
    assert_eq!(
        relayed(Responses, First, &request),
        (items(&[]), vec!["reasoning"])
    );
}

#[test]
fn reasoning_items_of_a_server_come_back_to_it() {
    let sealed = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "encrypted_content": "gAAAA"});
    let open = json!({"type": "reasoning", "id": "rs_2", "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}]});
    let request = items(&[sealed, open.clone()]);
    assert_eq!(
        relayed(Responses, First, &request),
        (request.clone(), vec![])
    );
    assert_eq!(
        relayed(Responses, Second, &request),
        (items(&[open]), vec!["reasoning"])
    );
}

#[test]
fn a_compaction_is_for_its_own_server_alone() {
    let compaction = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"});
    let request = items(&[compaction]);
    assert_eq!(
        relayed(Responses, First, &request),
        (request.clone(), vec![])
    );
    assert_eq!(
        relayed(Responses, Second, &request),
        (items(&[]), vec!["reasoning"])
    );
}

fn conversation(blocks: &[Value]) -> Value {
    let text = json!({"type": "text", "text": "Hi."});
    let blocks = [blocks, &[text]].concat();
    json!({"model": "m", "messages": [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": "Go on."},
    ]})
}

/// "Invalid `signature` in `thinking` block".
#[test]
fn thinking_without_a_signature_does_not_reach_a_server() {
    let blocks = [
        json!({"type": "thinking", "thinking": "Hm.", "signature": ""}),
        json!({"type": "thinking", "thinking": "Hm.", "signature": envelope()}),
        json!({"type": "redacted_thinking", "data": envelope()}),
    ];
    assert_eq!(
        relayed(Messages, First, &conversation(&blocks)),
        (conversation(&[]), vec!["reasoning"])
    );
}

/// llama.cpp has no signatures, and a model that loses its thoughts between calls begins anew.
#[test]
fn thinking_without_a_signature_stays_at_a_local_server() {
    let unsigned = json!({"type": "thinking", "thinking": "Hm.", "signature": ""});
    let sealed = json!({"type": "thinking", "thinking": "Hm.", "signature": envelope()});
    let mut request = conversation(std::slice::from_ref(&unsigned));
    request["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    assert_eq!(
        relayed(Messages, Local, &request),
        (request.clone(), vec![])
    );
    let both = [sealed, unsigned.clone()];
    assert_eq!(
        relayed(Messages, Local, &conversation(&both)),
        (conversation(&[unsigned.clone(), unsigned]), vec![])
    );
}

#[test]
fn thinking_of_a_server_comes_back_to_it() {
    let blocks = [
        json!({"type": "thinking", "thinking": "Hm.", "signature": "RXFj"}),
        json!({"type": "redacted_thinking", "data": "RW1v"}),
    ];
    let request = conversation(&blocks);
    assert_eq!(
        relayed(Messages, First, &request),
        (request.clone(), vec![])
    );
    assert_eq!(
        relayed(Messages, Second, &request),
        (conversation(&[]), vec!["reasoning"])
    );
}

/// The API refuses a message without content, and a budget for a turn without its thoughts
/// (<https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks>).
#[test]
fn a_turn_without_its_thoughts_is_still_valid() {
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": ""});
    let call = json!({"type": "tool_use", "id": "t1", "name": "f", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": "4"});
    let request = |blocks: Value, budget: Value| {
        json!({"model": "m", "thinking": budget, "messages": [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": [result]},
        ]})
    };
    let budget = json!({"type": "enabled", "budget_tokens": 1024});
    assert_eq!(
        relayed(Messages, First, &request(json!([thinking, call]), budget)),
        (
            request(json!([call]), json!({"type": "disabled"})),
            vec!["reasoning", "thinking"]
        )
    );
    let cut = json!({"model": "m", "messages": [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": [thinking]},
        {"role": "user", "content": "Go on."},
    ]});
    let left = json!({"model": "m", "messages": [
        {"role": "user", "content": "Hi."},
        {"role": "user", "content": "Go on."},
    ]});
    assert_eq!(relayed(Messages, First, &cut), (left, vec!["reasoning"]));
}

fn completion(details: bool, extra: bool) -> Value {
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let mut message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    if details {
        message["reasoning_details"] = json!([{"type": "reasoning.encrypted", "data": "ZW5j"}]);
    }
    if extra {
        let seal = json!({"google": {"thought_signature": "RWpR"}});
        message["extra_content"] = seal.clone();
        message["tool_calls"][0]["extra_content"] = seal;
    }
    json!({"model": "m", "messages": [message]})
}

/// LiteLLM, GitHub Copilot and agentgateway: <https://docs.litellm.ai/docs/reasoning_content>,
/// <https://github.com/anomalyco/opencode/pull/8900>,
/// <https://github.com/agentgateway/agentgateway/pull/2018>.
#[test]
fn seals_in_members_of_a_servers_own_are_for_it_alone() {
    let plain = completion(false, false);
    let (message, call) = ("/messages/0", "/messages/0/tool_calls/0");
    let block = json!([{"type": "thinking", "thinking": "Hm.", "signature": "SIG"}]);
    for (place, name, value, path) in [
        (
            message,
            "thinking_blocks",
            block,
            "messages[].thinking_blocks",
        ),
        (
            message,
            "reasoning_opaque",
            json!("OPQ"),
            "messages[].reasoning_opaque",
        ),
        (
            message,
            "reasoning_signature",
            json!("SIG"),
            "messages[].reasoning_signature",
        ),
        (
            call,
            "provider_specific_fields",
            json!({"thought_signature": "TS"}),
            "messages[].tool_calls[].provider_specific_fields",
        ),
    ] {
        let mut request = plain.clone();
        request.pointer_mut(place).unwrap()[name] = value;
        assert_eq!(relayed(Chat, First, &request), (request.clone(), vec![]));
        assert_eq!(relayed(Chat, Second, &request), (plain.clone(), vec![path]));
    }
}

/// Gemini and OpenRouter: "Function call is missing a thought_signature".
#[test]
fn seals_of_chat_completions_are_for_their_own_server_alone() {
    let request = completion(true, true);
    assert_eq!(relayed(Chat, First, &request), (request.clone(), vec![]));
    let lost = vec![
        "messages[].reasoning_details",
        "messages[].extra_content",
        "messages[].tool_calls[].extra_content",
    ];
    assert_eq!(
        relayed(Chat, Second, &request),
        (completion(false, false), lost)
    );
    let foreign = json!({"model": "m", "messages": [{"role": "assistant", "content": "Hi.",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": envelope()}]}]});
    let left = json!({"model": "m", "messages": [{"role": "assistant", "content": "Hi."}]});
    assert_eq!(
        relayed(Chat, First, &foreign),
        (left, vec!["messages[].reasoning_details"])
    );
}

/// A word in a prompt is no seal.
#[test]
fn requests_without_seals_stay_as_they_are() {
    for (protocol, list) in [
        (Responses, "input"),
        (Chat, "messages"),
        (Messages, "messages"),
    ] {
        let text = "encrypted_content, thinking, reasoning_details and extra_content";
        let request = json!({"model": "m", list: [{"role": "user", "content": text}]});
        assert_eq!(
            relayed(protocol, Second, &request),
            (request.clone(), vec![])
        );
    }
}

/// The mark of an account with the secret `own`.
fn mark() -> String {
    Envelope::new(b"own").mark().to_string()
}

fn marked(protocol: Protocol, reply: &Value) -> Value {
    let marker = Marker::new(protocol, &Envelope::new(b"own"));
    serde_json::from_slice(&marker.marked(reply.to_string().into_bytes())).unwrap()
}

#[test]
fn marked_seals_come_back_to_their_account_alone() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "encrypted_content": "gAAAA"});
    let reply = marked(Responses, &json!({"output": [reasoning]}));
    let seal = reply["output"][0]["encrypted_content"].as_str().unwrap();
    assert_eq!(seal, format!("{}gAAAA", mark()));
    let request = items(&[reply["output"][0].clone()]);
    assert_eq!(
        relayed(Responses, Second, &request),
        (items(&[reasoning]), vec![])
    );

    let blocks = [
        json!({"type": "thinking", "thinking": "Hm.", "signature": "RXFj"}),
        json!({"type": "redacted_thinking", "data": "RW1v"}),
    ];
    let reply = marked(Messages, &json!({"content": blocks}));
    let request = conversation(reply["content"].as_array().unwrap());
    assert_eq!(
        relayed(Messages, Second, &request),
        (conversation(&blocks), vec![])
    );

    let message = completion(true, true)["messages"][0].clone();
    let reply = marked(
        Chat,
        &json!({"choices": [{"index": 0, "message": message}]}),
    );
    let request = json!({"model": "m", "messages": [reply["choices"][0]["message"]]});
    assert_eq!(
        relayed(Chat, Second, &request),
        (completion(true, true), vec![])
    );
}

/// A change of the model within one protocol: no target has failed.
#[test]
fn marked_seals_of_another_account_are_left_out() {
    let other = Envelope::new(b"other").mark();
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "encrypted_content": format!("{other}gAAAA")});
    assert_eq!(
        relayed(Responses, First, &items(&[reasoning])),
        (items(&[]), vec!["reasoning"])
    );
    let thinking = json!({"type": "thinking", "thinking": "Hm.",
        "signature": format!("{other}RXFj")});
    assert_eq!(
        relayed(Messages, First, &conversation(&[thinking])),
        (conversation(&[]), vec!["reasoning"])
    );
}

#[test]
fn the_pieces_of_a_streamed_signature_are_marked() {
    let events = [
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"RX"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Fj"}}"#,
    ];
    let mut protocol = sluicegate_relay::Messages::default();
    protocol.mark_seals(Marker::new(Messages, &Envelope::new(b"own")));
    let (mut guard, mut out) = (Guard::new(protocol, "m".to_owned()), Vec::new());
    for event in events {
        let event = format!("data: {event}\n\n");
        guard.feed(event.into(), &mut out).unwrap();
    }
    let out = String::from_utf8(out).unwrap();
    let mark = mark();
    assert_eq!(out.matches(&mark).count(), 2);
    let signature = format!("{mark}RX{mark}Fj");
    let thinking =
        |signature: &str| json!({"type": "thinking", "thinking": "Hm.", "signature": signature});
    assert_eq!(
        relayed(Messages, Second, &conversation(&[thinking(&signature)])),
        (conversation(&[thinking("RXFj")]), vec![])
    );
}
