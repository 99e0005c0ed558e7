//! Relayed plain replies.

use engine::EngineError;
use serde_json::{Value, json};
use sluicegate_relay::{Chat, Messages, RelayProtocol, Responses};

use crate::laws::fixture;
use crate::laws::{completion, is_frequent, model, relayed};

#[test]
fn replies_pass_byte_for_byte_but_for_the_model() {
    fn law<S: RelayProtocol>(name: &str) {
        let body = fixture(name);
        let theirs = model(&body);
        assert!(
            sluicegate_relay::reply::<S>(&body, &theirs).unwrap().0 == body,
            "{name}"
        );
        let renamed =
            String::from_utf8(sluicegate_relay::reply::<S>(&body, "mine").unwrap().0).unwrap();
        let expected = String::from_utf8(body)
            .unwrap()
            .replacen(&theirs, "mine", 1);
        assert_eq!(renamed, expected, "{name}");
    }
    for name in [
        "text",
        "function-call",
        "parallel-function-calls",
        "reasoning",
        "incomplete",
        "refusal",
    ] {
        law::<Responses>(&format!("responses-response-{name}.json"));
    }
    for name in ["text", "reasoning", "length", "tool-calls", "json-mode"] {
        law::<Chat>(&format!("chat-response-{name}.json"));
    }
    for name in [
        "text",
        "tool-use",
        "thinking",
        "max-tokens",
        "stop-sequence",
    ] {
        law::<Messages>(&format!("messages-response-{name}.json"));
    }
}

/// The official SDKs read the usage and the role without looking for them:
/// <https://docs.anthropic.com/en/api/messages>. Some compatible servers have neither.
#[test]
fn a_reply_of_messages_gets_the_members_that_clients_rely_on() {
    let mut reply = json!({"type": "message", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"});
    for missing in [None, Some(Value::Null)] {
        if let Some(null) = missing {
            reply["usage"] = null.clone();
            reply["role"] = null;
        }
        let (relayed, end) =
            sluicegate_relay::reply::<Messages>(reply.to_string().as_bytes(), "m").unwrap();
        let relayed: Value = serde_json::from_slice(&relayed).unwrap();
        assert_eq!(relayed["role"], "assistant");
        assert_eq!(
            relayed["usage"],
            json!({"input_tokens": 0, "output_tokens": 0})
        );
        // The gateway estimates it.
        assert_eq!(end.usage, None);
    }
}

#[test]
fn a_reply_that_is_not_finished_is_no_success() {
    fn law<S: RelayProtocol>(mut reply: Value, member: &str, others: &[Value]) {
        assert!(
            sluicegate_relay::reply::<S>(reply.to_string().as_bytes(), "m").is_ok(),
            "{reply}"
        );
        for other in others {
            *reply.pointer_mut(member).unwrap() = other.clone();
            let ended = sluicegate_relay::reply::<S>(reply.to_string().as_bytes(), "m");
            assert!(
                matches!(ended, Err(EngineError::Truncated(_))),
                "{other}: {ended:?}"
            );
        }
    }
    let fixture = |name: &str| serde_json::from_slice::<Value>(&fixture(name)).unwrap();
    let response = fixture("responses-response-text.json");
    law::<Responses>(
        response,
        "/status",
        &[json!("in_progress"), json!("queued"), json!("cancelled")],
    );
    law::<Chat>(
        completion(Some("stop")),
        "/choices/0/finish_reason",
        &[json!(null)],
    );
    law::<Chat>(completion(Some("stop")), "/choices", &[json!([])]);
    law::<Messages>(
        fixture("messages-response-text.json"),
        "/stop_reason",
        &[json!(null)],
    );
}

#[test]
fn responses_does_not_end_as_chat_does() {
    let (out, ended) = relayed(Responses::default(), "m", &[b"data: [DONE]\n\n"]);
    assert!(
        out.is_empty() && matches!(ended, Err(EngineError::Truncated(_))),
        "{ended:?}"
    );
}

#[test]
fn a_reply_that_failed_is_no_success() {
    let mut reply: Value =
        serde_json::from_slice(&fixture("responses-response-failed.json")).unwrap();
    assert!(sluicegate_relay::reply::<Responses>(reply.to_string().as_bytes(), "m").is_err());
    reply["error"] = json!(null);
    let ended = sluicegate_relay::reply::<Responses>(reply.to_string().as_bytes(), "m");
    assert!(matches!(ended, Err(EngineError::Upstream(_))), "{ended:?}");
}

#[test]
fn chat_clients_get_no_breakdown_of_the_usage() {
    let usage = r#"{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens":4,"total_tokens":7,"completion_tokens_details":{}}"#;
    let body = format!(
        r#"{{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"Hi"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
    );
    let (reply, end) = sluicegate_relay::reply::<Chat>(body.as_bytes(), "m").unwrap();
    let reply = String::from_utf8(reply).unwrap();
    assert!(
        reply.ends_with(r#""usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#),
        "{reply}"
    );
    assert_eq!(
        end.usage.map(|usage| (usage.input, usage.output)),
        Some((3, 4))
    );
}

/// A reply as servers write it, with the members of its own.
const FREQUENT: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"theirs","choices":[{"index":0,"message":{"role":"assistant","content":"a \n\u00e9 \"b\"","refusal":null,"tool_calls":[],"function_call":null,"annotations":[]},"logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":3,"total_tokens":7,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2,"audio_tokens":0},"completion_tokens_details":null},"system_fingerprint":"fp"}"#;

#[test]
fn a_frequent_reply_is_written_in_one_pass() {
    let (reply, end) = Chat::frequent_reply(FREQUENT.as_bytes(), "my \"own\"").unwrap();
    let expected = FREQUENT
        .replace("\"theirs\"", r#""my \"own\"""#)
        .replace(
            r#","prompt_tokens_details":{"cached_tokens":2,"audio_tokens":0},"completion_tokens_details":null"#,
            "",
        );
    assert_eq!(String::from_utf8(reply).unwrap(), expected);
    let usage = end.usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output), (3, 2, 4));
    assert!(!end.incomplete);
    for name in ["text", "reasoning", "length", "json-mode"] {
        let body = fixture(&format!("chat-response-{name}.json"));
        assert!(is_frequent(&body, "m"), "{name}");
    }
    let (_, end) = Chat::frequent_reply(&fixture("chat-response-length.json"), "m").unwrap();
    assert!(end.incomplete);
}

/// The typed reader gets every reply that needs more than to be forwarded.
#[test]
fn a_reply_that_needs_a_judgment_is_not_frequent() {
    assert!(is_frequent(FREQUENT.as_bytes(), ""));
    let stop = r#""finish_reason":"stop""#;
    for (theirs, other) in [
        (stop, r#""finish_reason":null"#),
        (stop, r#""finish_reason":"tool_calls""#),
        (stop, r#""finish_reason":"error""#),
        (stop, r#""finish_reason":"stop","finish_reason":"stop""#),
        (stop, r#""stop":1"#),
        (r#""id":"c""#, r#""error":{"message":"no"}"#),
        (r#""id":"c""#, r#""id":"c","id":"d""#),
        (r#""id":"c""#, r#""type":"error""#),
        (r#""id":"c""#, r#""a":[[[[[[[[[1]]]]]]]]]"#),
        (r#""id":"c""#, r#""a":1e400"#),
        (r#""model""#, r#""m\u006fdel""#),
        ("chat.completion", "error"),
        (r#""tool_calls":[]"#, r#""tool_calls":[{}]"#),
        (r#""function_call":null"#, r#""function_call":{}"#),
        (r#""content":"a"#, r#""content":[{"text":"a"}],"b":"a"#),
        ("\\u00e9", "\\ud800"),
        ("\\n", "\n"),
        (r#""index":0"#, r#""index":1"#),
        (r#""index":0,"#, r#""index":0,"delta":{},"#),
        (r#""choices":[{"#, r#""choices":[{},{"#),
        (r#""choices":["#, r#""choices":null,"c":["#),
        ("\"fp\"}", "\"fp\""),
        ("\"fp\"}", "\"fp\"}}"),
    ] {
        let body = FREQUENT.replacen(theirs, other, 1);
        assert_ne!(body, FREQUENT, "{theirs}");
        assert!(!is_frequent(body.as_bytes(), "m"), "{body}");
    }
    let mut bytes = FREQUENT.as_bytes().to_vec();
    bytes[8] = 0xff;
    assert!(!is_frequent(&bytes, "m"));
}

/// <https://platform.claude.com/docs/en/build-with-claude/compaction>, with `pause_after_compaction`
#[test]
fn a_reply_that_ends_with_a_compaction_is_relayed() {
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "compaction", "content": "Summary."}], "stop_reason": "compaction",
        "stop_sequence": null, "usage": {"input_tokens": 9, "output_tokens": 3}});
    let body = reply.to_string();
    let (found, _) = sluicegate_relay::reply::<Messages>(body.as_bytes(), "m").unwrap();
    assert_eq!(String::from_utf8(found).unwrap(), body);
}

/// Returns what a client gets of a plain reply with this message and finish reason.
fn choice_of(message: Value, finish_reason: &str) -> Value {
    let reply = json!({"id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]});
    let (found, _) = sluicegate_relay::reply::<Chat>(reply.to_string().as_bytes(), "m").unwrap();
    serde_json::from_slice::<Value>(&found).unwrap()["choices"][0].clone()
}

/// Clients parse them: <https://github.com/braintrustdata/braintrust-sdk-javascript/pull/1061>.
#[test]
fn arguments_of_a_reply_are_never_null() {
    for function in [
        json!({"name": "f", "arguments": null}),
        json!({"name": "f"}),
    ] {
        let call = json!({"id": "call_1", "type": "function", "function": function});
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let found = choice_of(message, "tool_calls");
        let owed = json!({"name": "f", "arguments": "{}"});
        assert_eq!(found["message"]["tool_calls"][0]["function"], owed);
        assert_eq!(found["message"]["tool_calls"][0]["id"], "call_1");
    }
}

/// The id is half of the SHA-256 of `c1.0.0`.
#[test]
fn a_call_in_the_old_form_becomes_a_whole_call() {
    let function = json!({"name": "f", "arguments": "{}"});
    let message = json!({"role": "assistant", "content": null, "function_call": function});
    let found = choice_of(message, "function_call");
    let id = "call_34808390ec1ffd1b186bcddd48077165";
    let call = json!({"id": id, "type": "function", "function": function});
    assert_eq!(found["message"]["tool_calls"], json!([call]));
    assert_eq!(found["finish_reason"], "tool_calls");
    // In a stream, the end is an event of its own.
    let chunk = |delta: Value, finish_reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
        json!({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
    };
    let mut guard = sluicegate_relay::Guard::new(Chat::default(), "m".to_owned());
    let mut out = Vec::new();
    for event in [
        chunk(
            json!({"function_call": {"name": "f", "arguments": ""}}),
            Value::Null,
        ),
        chunk(json!({"function_call": {"arguments": "{}"}}), Value::Null),
        chunk(json!({}), json!("function_call")),
    ] {
        guard
            .feed(format!("data: {event}\n\n").into(), &mut out)
            .unwrap();
    }
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.matches(id).count(), 1, "{out}");
    assert_eq!(
        out.matches(r#""finish_reason":"tool_calls""#).count(),
        1,
        "{out}"
    );
    assert!(!out.contains(r#""function_call""#), "{out}");
}
