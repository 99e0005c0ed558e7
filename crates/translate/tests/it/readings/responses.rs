//! Answers of servers that bend Responses.

use engine::Stop;
use serde_json::{Value, json};
use vendor::Protocol;

use super::{call, parse_events};
use crate::streams::ModelOutput;

#[test]
fn responses_that_come_whole() {
    let item = json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hello."}]});
    let completed = json!({"type": "response.completed", "response": {}});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    assert_eq!(
        parse_events(Protocol::Responses, &[done.clone(), completed.clone()]).text,
        "Hello."
    );
    let piece = json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"});
    let text = json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hello."});
    assert_eq!(
        parse_events(
            Protocol::Responses,
            &[piece.clone(), text, done.clone(), completed.clone()]
        )
        .text,
        "Hello."
    );
    assert_eq!(
        parse_events(Protocol::Responses, &[piece, done, completed]).text,
        "Hello."
    );
    let terminal = json!({"type": "response.completed", "response": {"output": [item]}});
    assert_eq!(
        parse_events(Protocol::Responses, &[terminal]).text,
        "Hello."
    );
}

#[test]
fn responses_without_places() {
    let output = parse_events(
        Protocol::Responses,
        &[
            json!({"type": "response.reasoning.delta", "item_id": "r", "delta": "Hm. "}),
            json!({"type": "response.reasoning_text.delta", "item_id": "r", "delta": "So."}),
            json!({"type": "response.output_item.added", "item": {"type": "function_call", "id": "x", "call_id": "c", "name": "f"}}),
            json!({"type": "response.function_call_arguments.delta", "item_id": "x", "delta": "{\"a\""}),
            json!({"type": "response.function_call_arguments.done", "item_id": "x", "arguments": "{\"a\":1}"}),
            json!({"type": "response.output_item.added", "item": {"type": "message", "id": "m"}}),
            json!({"type": "response.output_text.delta", "delta": "Done."}),
            json!({"type": "response.vendor.event", "delta": 5}),
            json!({"type": "keepalive"}),
            json!({"type": "response.completed", "response": {"output": [{"type": "message", "content": []}, {"type": "function_call", "arguments": "{\"a\":1}"}]}}),
        ],
    );
    assert_eq!(
        (output.reasoning.as_str(), output.text.as_str()),
        ("Hm. So.", "Done.")
    );
    assert_eq!(output.calls, [call("c", "f", "{\"a\":1}")]);
    assert_eq!(output.end, Some((Stop::ToolCalls, None)));
}

#[test]
fn items_that_are_all_numbered_zero() {
    let item = |kind: &str, item: Value| json!({"type": format!("response.output_item.{kind}"), "output_index": 0, "item": item});
    let call_of = |id: &str, arguments: &str| json!({"type": "function_call", "id": id, "call_id": id, "name": "f", "arguments": arguments});
    let output = parse_events(
        Protocol::Responses,
        &[
            item("added", call_of("a", "")),
            item("done", call_of("a", "")),
            item("added", call_of("b", "")),
            json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"x\":1}"}),
            item("done", call_of("b", "{\"x\":1}")),
            json!({"type": "response.completed", "response": {}}),
        ],
    );
    assert_eq!(
        output.calls,
        [call("a", "f", "{}"), call("b", "f", "{\"x\":1}")]
    );
    let block = |id: &str| json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": id, "name": "f", "input": {}}});
    let piece = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"x\":1}"}});
    let stop = json!({"type": "content_block_stop", "index": 0});
    let reason = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    let end = json!({"type": "message_stop"});
    let output = parse_events(
        Protocol::Messages,
        &[
            block("a"),
            stop.clone(),
            block("b"),
            piece,
            stop,
            reason,
            end,
        ],
    );
    assert_eq!(
        output.calls,
        [call("a", "f", "{}"), call("b", "f", "{\"x\":1}")]
    );
}

#[test]
fn final_response_completes_text_and_calls() {
    let message = |id: &str, text: &str| {
        let content = if text.is_empty() {
            json!([])
        } else {
            json!([{"type": "output_text", "text": text}])
        };
        json!({"type": "message", "id": id, "content": content})
    };
    let reasoning =
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]});
    let called = json!({"type": "function_call", "id": "y", "call_id": "a", "name": "f", "arguments": "{\"x\":1}"});
    let added = |item: &Value| json!({"type": "response.output_item.added", "output_index": 0, "item": item});
    let delta = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"});
    let completed =
        |output: Value| json!({"type": "response.completed", "response": {"output": output}});
    let calls = [call("a", "f", "{\"x\":1}")];
    for (before, output) in [
        (
            vec![added(&message("m", ""))],
            json!([message("m", "Hello"), called]),
        ),
        (
            vec![added(&message("m", "")), delta.clone()],
            json!([message("m", "Hello"), called]),
        ),
        // The id differs, not all items are in the stream, or the call has the index of another
        // item.
        (
            vec![added(&message("m", "")), delta.clone()],
            json!([reasoning, message("n", "Hello"), called]),
        ),
        (
            vec![delta.clone()],
            json!([reasoning, message("n", "Hello"), called]),
        ),
        (
            vec![added(&message("m", "")), delta, added(&called)],
            json!([message("n", "Hello"), called]),
        ),
    ] {
        let events: Vec<_> = before.into_iter().chain([completed(output)]).collect();
        let output = parse_events(Protocol::Responses, &events);
        assert_eq!(
            (output.text.as_str(), output.calls.as_slice()),
            ("Hello", &calls[..]),
            "{events:?}"
        );
    }
}

/// <https://github.com/zed-industries/zed/pull/62466>
#[test]
fn summaries_of_two_items_are_paragraphs() {
    let message =
        json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi."}]});
    let reasoning = |id: &str, text: &str| json!({"id": id, "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]});
    let output = json!([
        reasoning("rs_1", "**A**"),
        reasoning("rs_2", "**B**"),
        message
    ]);
    let reply =
        json!({"id": "resp_1", "object": "response", "status": "completed", "output": output});
    let reply =
        sluicegate_translate::outbound::reply(Protocol::Responses, reply.to_string().as_bytes());
    let found = ModelOutput::of(&reply.unwrap());
    assert_eq!((&*found.reasoning, &*found.text), ("**A**\n\n**B**", "Hi."));
    let delta = |item: u64, text: &str| {
        json!({"type": "response.reasoning_summary_text.delta", "output_index": item,
            "item_id": format!("rs_{item}"), "summary_index": 0, "delta": text})
    };
    let events = [
        delta(0, "**A"),
        delta(0, "**"),
        delta(1, "**B**"),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [
            reasoning("rs_0", "**A**"), reasoning("rs_1", "**B**"), message]}}),
    ];
    let found = parse_events(Protocol::Responses, &events);
    assert_eq!((&*found.reasoning, &*found.text), ("**A**\n\n**B**", "Hi."));
}
