//! Answers of servers that bend Messages.

use engine::{EngineError, Stop, TextEvent};
use serde_json::json;
use sluicegate_translate::outbound::reply;
use vendor::Protocol;

use super::{call, failed, parse_events, start};
use crate::streams::{ModelOutput, parse_stream};

#[test]
fn the_input_of_a_tool_may_come_with_its_block() {
    let output = parse_events(
        Protocol::Messages,
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s", "name": "search", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"q\":1}"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "redacted_thinking", "data": "x"}}),
            json!({"type": "content_block_stop", "index": 2}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ],
    );
    assert_eq!(output.calls, [call("t", "f", "{\"a\":1}")]);
    assert_eq!(output.end, Some((Stop::ToolCalls, None)));
}

#[test]
fn numbers_of_a_tool_input_are_kept_as_written() {
    let body = br#"{"type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":{"n":12345678901234567890123,"x":1.50}}],"stop_reason":"tool_use"}"#;
    let output = ModelOutput::of(&reply(Protocol::Messages, body).unwrap());
    assert_eq!(
        output.calls,
        [call("t", "f", r#"{"n":12345678901234567890123,"x":1.50}"#)]
    );
}

/// Events after the terminal one are ignored. Content between the stop reason and the terminal
/// event may belong to another answer.
#[test]
fn s07_events_after_message_stop_are_ignored() {
    let text = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi."}});
    let stop = json!({"type": "content_block_stop", "index": 0});
    let reason = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
    let end = json!({"type": "message_stop"});
    let late = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Late."}});
    let answer = [
        text.clone(),
        stop.clone(),
        reason.clone(),
        end.clone(),
        late.clone(),
        text.clone(),
    ];
    let output = parse_events(Protocol::Messages, &answer);
    assert_eq!(
        (output.text.as_str(), output.end.unwrap().0),
        ("Hi.", Stop::End)
    );
    for late in [late, text.clone()] {
        let error = failed(
            Protocol::Messages,
            &[
                start(),
                text.clone(),
                stop.clone(),
                reason.clone(),
                late,
                end.clone(),
            ],
        );
        assert!(matches!(error, EngineError::Upstream(_)), "{error:?}");
    }
}

/// Output after a call whose input is cut would make clients execute the call.
#[test]
fn nothing_follows_a_call_whose_input_is_cut() {
    let events = [
        start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"a\":"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Done."}}),
    ];
    let data = events.map(|event| event.to_string());
    let (events, ended) = parse_stream(Protocol::Messages, &data);
    ended.unwrap_err();
    assert_eq!(
        events,
        [
            TextEvent::Call {
                id: "t".to_owned(),
                name: "f".to_owned()
            },
            TextEvent::Arguments("{\"a\":".to_owned()),
        ]
    );
}
