//! Violations of the stream grammar.

use serde_json::{Value, json};
use sluicegate_messages::{Block, Event, Grammar, Offence, StopReason};

use crate::fold;

fn event(value: &Value) -> Event {
    Event::read(&value.to_string()).unwrap()
}

fn start() -> Value {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": 1}});
    json!({"type": "message_start", "message": message})
}

fn open(index: u32, kind: &str) -> Value {
    let block = match kind {
        "tool_use" => json!({"type": kind, "id": "toolu_1", "name": "f", "input": {}}),
        "thinking" => json!({"type": kind, "thinking": "", "signature": ""}),
        "redacted_thinking" => json!({"type": kind, "data": "c2Vj"}),
        "text" => json!({"type": kind, "text": ""}),
        _ => json!({"type": kind, "input": {}}),
    };
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, kind: &str, text: &str) -> Value {
    let member = match kind {
        "input_json" => "partial_json",
        kind => kind,
    };
    json!({"type": "content_block_delta", "index": index, "delta": {"type": format!("{kind}_delta"), member: text}})
}

fn close(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn message_delta(reason: &str) -> Value {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
}

fn stop() -> Value {
    json!({"type": "message_stop"})
}

/// Returns the first violation of a stream, its end included.
fn offence(stream: &[Value]) -> Option<Offence> {
    let mut grammar = Grammar::default();
    let events = stream.iter().map(|value| grammar.push(&event(value)));
    events
        .collect::<Result<(), _>>()
        .and_then(|()| grammar.finish())
        .err()
}

#[test]
fn order_is_kept() {
    let text = || delta(0, "text", "a");
    assert_eq!(
        offence(&[
            start(),
            open(0, "text"),
            text(),
            close(0),
            message_delta("end_turn"),
            stop()
        ]),
        None
    );
    assert_eq!(offence(&[start(), message_delta("end_turn"), stop()]), None);
    assert_eq!(offence(&[]), Some(Offence::Truncated));
    assert_eq!(offence(&[json!({"type": "ping"})]), Some(Offence::Opening));
    assert_eq!(offence(&[start(), start()]), Some(Offence::Opening));
    assert_eq!(
        offence(&[start(), open(1, "text")]),
        Some(Offence::BlockStart)
    );
    assert_eq!(
        offence(&[start(), open(0, "text"), open(1, "text")]),
        Some(Offence::BlockStart)
    );
    assert_eq!(offence(&[start(), text()]), Some(Offence::Delta));
    assert_eq!(
        offence(&[start(), open(0, "text"), delta(1, "text", "a")]),
        Some(Offence::Delta)
    );
    assert_eq!(offence(&[start(), close(0)]), Some(Offence::BlockStop));
    assert_eq!(
        offence(&[start(), open(0, "text"), close(1)]),
        Some(Offence::BlockStop)
    );
    assert_eq!(
        offence(&[start(), open(0, "text"), message_delta("end_turn")]),
        Some(Offence::MessageDelta)
    );
    assert_eq!(
        offence(&[
            start(),
            message_delta("end_turn"),
            message_delta("end_turn")
        ]),
        Some(Offence::MessageDelta)
    );
    assert_eq!(
        offence(&[start(), message_delta("end_turn"), open(0, "text")]),
        Some(Offence::BlockStart)
    );
    assert_eq!(offence(&[start(), stop()]), Some(Offence::Unfinished));
    assert_eq!(
        offence(&[start(), message_delta("end_turn")]),
        Some(Offence::Truncated)
    );
    assert_eq!(
        offence(&[start(), message_delta("end_turn"), stop(), stop()]),
        Some(Offence::AfterEnd)
    );
    let unreasoned = json!({"type": "message_delta", "delta": {"stop_reason": null}, "usage": {"output_tokens": 0}});
    assert_eq!(offence(&[start(), unreasoned]), Some(Offence::MessageDelta));
}

#[test]
fn blocks_take_their_own_deltas_alone() {
    let within = |kind: &str, deltas: &[Value]| {
        let stream = [
            &[start(), open(0, kind)],
            deltas,
            &[close(0), message_delta("end_turn"), stop()],
        ]
        .concat();
        offence(&stream)
    };
    let (text, input) = (delta(0, "text", "a"), delta(0, "input_json", "{}"));
    let (thinking, signature) = (delta(0, "thinking", "a"), delta(0, "signature", "s"));
    assert_eq!(
        within("text", std::slice::from_ref(&input)),
        Some(Offence::Delta)
    );
    assert_eq!(
        within("tool_use", std::slice::from_ref(&text)),
        Some(Offence::Delta)
    );
    assert_eq!(
        within("thinking", std::slice::from_ref(&text)),
        Some(Offence::Delta)
    );
    assert_eq!(
        within("redacted_thinking", std::slice::from_ref(&thinking)),
        Some(Offence::Delta)
    );
    assert_eq!(
        within("thinking", &[thinking.clone(), signature.clone()]),
        None
    );
    assert_eq!(
        within("thinking", &[signature.clone(), signature.clone()]),
        Some(Offence::Signature)
    );
    assert_eq!(
        within("thinking", &[signature, thinking]),
        Some(Offence::Signature)
    );
    assert_eq!(within("server_tool_use", &[input]), None);
    assert_eq!(
        within(
            "text",
            &[json!({"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta"}})]
        ),
        None
    );
}

#[test]
fn a_call_is_an_object_unless_the_model_was_cut_off() {
    let call = |pieces: &[&str], reason: &str| {
        let pieces = pieces.iter().map(|piece| delta(0, "input_json", piece));
        let stream: Vec<_> = [start(), open(0, "tool_use")]
            .into_iter()
            .chain(pieces)
            .collect();
        [stream, vec![close(0), message_delta(reason), stop()]].concat()
    };
    for pieces in [&[][..], &["", " "], &["{", "\"a\": [1]}"]] {
        assert_eq!(offence(&call(pieces, "tool_use")), None, "{pieces:?}");
    }
    for pieces in [&["{"][..], &["{}", "{}"], &["[]"], &["null"]] {
        assert_eq!(
            offence(&call(pieces, "tool_use")),
            Some(Offence::Input),
            "{pieces:?}"
        );
        assert_eq!(
            offence(&call(pieces, "end_turn")),
            Some(Offence::Input),
            "{pieces:?}"
        );
        assert_eq!(offence(&call(pieces, "max_tokens")), None, "{pieces:?}");
    }
    let mut stream = call(&["{"], "max_tokens");
    stream.insert(4, open(1, "text"));
    assert_eq!(
        offence(&stream),
        Some(Offence::Input),
        "nothing may follow an incomplete call"
    );
}

#[test]
fn truncated_call_keeps_its_partial_arguments() {
    let stream = [
        start(),
        open(0, "tool_use"),
        delta(0, "input_json", "{\"a"),
        close(0),
        message_delta("max_tokens"),
        stop(),
    ];
    let message = fold(&stream.iter().map(event).collect::<Vec<_>>()).unwrap();
    let Block::ToolUse(call) = &message.content[0] else {
        panic!("{message:?}")
    };
    assert_eq!(call.input.text(), r#"{"_raw":"{\"a"}"#);
    assert_eq!(
        (message.stop_reason, message.usage.output_tokens),
        (Some(StopReason::MaxTokens), 9)
    );
    assert_eq!(
        message.usage.input_tokens, 3,
        "counts that the end omits are kept"
    );
}

#[test]
fn unknown_events_and_members_are_kept() {
    let new = json!({"type": "content_block_blink", "index": 7, "deep": {"a": [1]}});
    assert_eq!(event(&new).data(), new.to_string());
    assert_eq!(
        offence(&[
            new.clone(),
            start(),
            new.clone(),
            message_delta("new_reason"),
            new,
            stop()
        ]),
        None
    );

    let message_delta = json!({"type": "message_delta",
        "delta": {"stop_reason": "refusal", "stop_sequence": null, "stop_details": {"type": "refusal"}},
        "usage": {"output_tokens": 9, "service_tier": "standard"}});
    let server = [
        open(0, "server_tool_use"),
        delta(0, "input_json", "{\"q\":1}"),
        close(0),
    ];
    let stream = [&[start()], &server[..], &[message_delta, stop()]].concat();
    let message = fold(&stream.iter().map(event).collect::<Vec<_>>()).unwrap();
    let value = serde_json::to_value(&message).unwrap();
    assert_eq!(value["stop_details"]["type"], "refusal");
    assert_eq!(value["usage"]["service_tier"], "standard");
    assert_eq!(
        value["content"][0],
        json!({"type": "server_tool_use", "input": {"q": 1}})
    );
}

#[test]
fn a_foreign_type_stays_on_its_line() {
    let event = Event::read(r#"{"type":"x\ndata: {}\n\nevent: message_stop"}"#).unwrap();
    let mut bytes = Vec::new();
    event.write(&mut bytes);
    assert_eq!(
        bytes,
        b"data: {\"type\":\"x\\ndata: {}\\n\\nevent: message_stop\"}\n\n"
    );
}

#[test]
fn invalid_event_data_is_reported() {
    for data in [
        "",
        "[DONE]",
        "[]",
        "{}",
        r#"{"type":"content_block_stop"}"#,
        r#"{"type":"message_start","message":{}}"#,
    ] {
        let error = Event::read(data).unwrap_err();
        assert!(
            error.to_string().starts_with("invalid Messages event: "),
            "{error}"
        );
    }
}
