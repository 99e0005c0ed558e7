//! The usage of relayed answers: clients get the settled counts.

use serde_json::{Value, json};
use sluicegate_relay::{Chat, Guard, Images, Messages, RelayProtocol, Responses};

/// Relays events. Returns the text that the client gets, and the input and output tokens so far.
fn relayed<S: RelayProtocol>(protocol: S, events: &[Value]) -> (String, Option<[u64; 2]>) {
    let (mut guard, mut out) = (Guard::new(protocol, "m".to_owned()), Vec::new());
    for event in events {
        let name = event["type"]
            .as_str()
            .map(|name| format!("event: {name}\n"));
        let event = format!("{}data: {event}\n\n", name.unwrap_or_default());
        guard.feed(event.into(), &mut out).ok();
    }
    let usage = guard.usage().map(|usage| [usage.input, usage.output]);
    (String::from_utf8(out).unwrap(), usage)
}

/// Relays a reply of this protocol with a usage, and returns the usage that the client gets.
fn usage_of<S: RelayProtocol>(mut reply: Value, usage: &Value) -> Value {
    reply["usage"] = usage.clone();
    let (relayed, end) = sluicegate_relay::reply::<S>(reply.to_string().as_bytes(), "m").unwrap();
    assert_eq!(S::usage_of_reply(reply.to_string().as_bytes()), end.usage);
    let relayed: Value = serde_json::from_slice(&relayed).unwrap();
    relayed["usage"].clone()
}

fn completion() -> Value {
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "theirs",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}]})
}

fn message() -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "stop_reason": "end_turn",
        "stop_sequence": null, "content": [{"type": "text", "text": "Hi."}]})
}

/// <https://github.com/vercel/ai/issues/12425>
#[test]
fn counts_of_a_reply_add_up_for_its_client() {
    let details = json!({"reasoning_tokens": 300});
    let xai = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 410, "completion_tokens_details": details});
    let sums = json!({"prompt_tokens": 100, "completion_tokens": 310, "total_tokens": 410});
    assert_eq!(usage_of::<Chat>(completion(), &xai), sums);
    // A member that is absent is added.
    let lean = json!({"prompt_tokens": 100, "total_tokens": 410});
    assert_eq!(usage_of::<Chat>(completion(), &lean), sums);
    let response = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "theirs", "output": []});
    let xai = json!({"input_tokens": 100, "output_tokens": 10, "total_tokens": 410, "output_tokens_details": details});
    let sums = json!({"input_tokens": 100, "output_tokens": 310, "total_tokens": 410, "output_tokens_details": details});
    assert_eq!(usage_of::<Responses>(response, &xai), sums);
    let claude = json!({"input_tokens": 5, "cache_creation_input_tokens": null, "output_tokens": 2,
        "cache_creation": {"ephemeral_1h_input_tokens": 7}});
    let mut sums = claude.clone();
    sums["cache_creation_input_tokens"] = json!(7);
    assert_eq!(usage_of::<Messages>(message(), &claude), sums);
}

#[test]
fn counts_of_a_chat_stream_add_up_for_its_client() {
    let text =
        json!({"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]});
    let details = json!({"cached_tokens": 64});
    let usage = json!({"object": "chat.completion.chunk", "model": "m", "choices": [],
        "usage": {"prompt_tokens": 100, "prompt_tokens_details": details, "completion_tokens": 10, "total_tokens": 410}});
    let (out, so_far) = relayed(Chat::default(), &[text.clone(), usage.clone()]);
    let expected = r#""usage":{"prompt_tokens":100,"completion_tokens":310,"total_tokens":410}}"#;
    assert!(out.trim_end().ends_with(expected), "{out}");
    assert_eq!(so_far, Some([100, 310]));
    let (out, so_far) = relayed(Chat::default().hiding_usage(), &[text, usage]);
    assert!(!out.contains("usage"), "{out}");
    assert_eq!(so_far, Some([100, 310]));
}

/// <https://github.com/envoyproxy/ai-gateway/issues/1631>
#[test]
fn counts_of_a_message_stream_never_fall_for_its_client() {
    let mut start = message();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"] =
        json!({"input_tokens": 1500, "cache_read_input_tokens": 8000, "output_tokens": 1});
    let delta = |usage: Value| json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": usage});
    let stream = |usage| {
        [
            json!({"type": "message_start", "message": start}),
            delta(usage),
            json!({"type": "message_stop"}),
        ]
    };
    let zeros = json!({"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 20});
    let (out, so_far) = relayed(Messages::default(), &stream(zeros));
    let deltas = out.lines().filter_map(|line| line.strip_prefix("data: "));
    let deltas = deltas.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let usages: Vec<_> = deltas
        .filter_map(|data| data.get("usage").cloned())
        .collect();
    let settled =
        json!({"input_tokens": 1500, "cache_read_input_tokens": 8000, "output_tokens": 20});
    assert_eq!(usages, [settled]);
    assert_eq!(so_far, Some([9500, 20]));
    // Honest counts stay as they are, also if there are fewer of them.
    for usage in [
        json!({"output_tokens": 20}),
        json!({"input_tokens": 1500, "cache_read_input_tokens": 8000, "output_tokens": 20}),
    ] {
        let (out, so_far) = relayed(Messages::default(), &stream(usage.clone()));
        assert!(out.contains(&delta(usage).to_string()), "{out}");
        assert_eq!(so_far, Some([9500, 20]));
    }
}

#[test]
fn counts_of_an_only_choice_join_those_of_the_stream() {
    let chunk = |choice: Value, usage: Value| json!({"object": "chat.completion.chunk", "choices": [choice], "usage": usage});
    let counts = json!({"prompt_tokens": 5, "completion_tokens": 1});
    let first = json!({"index": 3, "delta": {"content": "Hi."}, "usage": counts});
    let last = json!({"index": 3, "delta": {}, "finish_reason": "stop"});
    let events = [
        chunk(first, Value::Null),
        chunk(last, json!({"completion_tokens": 9})),
    ];
    assert_eq!(relayed(Chat::default(), &events).1, Some([5, 9]));
}

/// A client that leaves, an error, and a reply that is rejected.
#[test]
fn counts_are_known_before_and_without_an_end() {
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 200, "output_tokens": 1}}});
    assert_eq!(relayed(Messages::default(), &[start]).1, Some([200, 1]));
    let created = json!({"type": "response.created", "response": {"id": "r", "usage": {"input_tokens": 7, "output_tokens": 0}}});
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "usage": {"input_tokens": 7, "output_tokens": 9}}});
    assert_eq!(
        relayed(Responses::default(), &[created, failed]).1,
        Some([7, 9])
    );
    assert_eq!(relayed(Chat::default(), &[json!({"choices": []})]).1, None);

    let mut rejected = completion();
    rejected["choices"][0]["finish_reason"] = json!("error");
    rejected["usage"] = json!({"prompt_tokens": 6000, "completion_tokens": 900});
    let body = rejected.to_string();
    assert!(sluicegate_relay::reply::<Chat>(body.as_bytes(), "m").is_err());
    let usage = Chat::usage_of_reply(body.as_bytes());
    assert_eq!(
        usage.map(|usage| (usage.input, usage.output)),
        Some((6000, 900))
    );
    let picture = br#"{"data":[],"usage":{"input_tokens":3,"output_tokens":4}}"#;
    assert_eq!(
        Images::usage_of_reply(picture).map(|usage| usage.output),
        Some(4)
    );
    assert_eq!(Chat::usage_of_reply(b"<html>"), None);
}

/// Kimi: <https://github.com/maximhq/bifrost/issues/5354>.
#[test]
fn a_prompt_that_is_split_at_the_end_is_counted_once() {
    let mut start = message();
    start["content"] = json!([]);
    start["usage"] = json!({"input_tokens": 2000, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0, "output_tokens": 0});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
        "usage": {"input_tokens": 336, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 1664,
            "output_tokens": 7}});
    let start = json!({"type": "message_start", "message": start});
    let (out, so_far) = relayed(Messages::default(), &[start, end]);
    assert_eq!(so_far, Some([2000, 7]));
    let last = out.rsplit_once("data: ").unwrap().1;
    let last: Value = serde_json::from_str(last.trim()).unwrap();
    let owed = json!({"input_tokens": 336, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 1664,
        "output_tokens": 7});
    assert_eq!(last["usage"], owed);
}

/// Clients of Messages read the usage of each `message_delta` without looking for it:
/// <https://github.com/anthropics/anthropic-sdk-python/issues/1806>.
#[test]
fn a_usage_that_is_missing_or_null_is_added() {
    let missing = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}});
    let mut null = missing.clone();
    null["usage"] = Value::Null;
    let mut start = json!({"type": "message_start", "message": message()});
    start["message"]["content"] = Value::Null;
    for (usage, owed) in [
        (
            json!({"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}),
            json!({"input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 7, "output_tokens": 1}),
        ),
        (
            Value::Null,
            json!({"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}),
        ),
    ] {
        start["message"]["usage"] = usage.clone();
        let (out, _) = relayed(
            Messages::default(),
            &[start.clone(), missing.clone(), null.clone()],
        );
        let data = out.lines().filter_map(|line| line.strip_prefix("data: "));
        let data: Vec<Value> = data
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        let empty = json!({"input_tokens": 0, "output_tokens": 0});
        let at_start = if usage.is_null() { empty } else { usage };
        assert_eq!(data[0]["message"]["content"], json!([]));
        let usages = [
            &data[0]["message"]["usage"],
            &data[1]["usage"],
            &data[2]["usage"],
        ];
        assert_eq!(usages, [&at_start, &owed, &owed]);
    }
}
