//! Tests of parsing upstream streams and replies, valid ones and deviations.

mod chat;
mod ends;
mod failures;
mod messages;
mod responses;
mod usage;

use engine::{EngineError, Stop, Usage};
use serde_json::{Value, json};
use sluicegate_translate::outbound::{Reader, reply};
use vendor::Protocol;

use crate::streams::{ModelOutput, data, fixture, parse_ok, parse_stream};

/// Parses a fixture as a stream.
fn stream(name: &str) -> ModelOutput {
    parse_ok(protocol(name), &data(&fixture(name)))
}

/// Parses a fixture as a complete reply.
fn complete_reply(name: &str) -> ModelOutput {
    ModelOutput::of(&reply(protocol(name), &fixture(name)).unwrap())
}

fn protocol(name: &str) -> Protocol {
    match name.split_once('-') {
        Some(("responses", _)) => Protocol::Responses,
        Some(("chat", _)) => Protocol::Chat,
        _ => Protocol::Messages,
    }
}

fn chat(events: &[Value]) -> ModelOutput {
    let mut data: Vec<_> = events.iter().map(Value::to_string).collect();
    data.push("[DONE]".to_owned());
    parse_ok(Protocol::Chat, &data)
}

/// Parses a stream. One of Messages gets a `message_start` unless it has one.
fn parse_events(protocol: Protocol, events: &[Value]) -> ModelOutput {
    let needs_start = protocol == Protocol::Messages && events[0]["type"] != "message_start";
    let start = needs_start.then(start);
    let data: Vec<_> = start.iter().chain(events).map(Value::to_string).collect();
    parse_ok(protocol, &data)
}

fn start() -> Value {
    json!({"type": "message_start", "message": {}})
}

fn failed(protocol: Protocol, events: &[Value]) -> EngineError {
    let data: Vec<_> = events.iter().map(Value::to_string).collect();
    parse_stream(protocol, &data).1.unwrap_err()
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn pieces(pieces: Value) -> Value {
    delta(json!({ "tool_calls": pieces }))
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

fn used(input: u64, output: u64) -> Option<Usage> {
    Some(Usage {
        input,
        output,
        ..Usage::default()
    })
}

#[test]
fn streams_of_text() {
    for name in [
        "chat-stream-text.sse",
        "responses-stream-text.sse",
        "messages-stream-text.sse",
    ] {
        let output = stream(name);
        assert!(!output.text.is_empty(), "{name}");
        assert_eq!(output.end.unwrap().0, Stop::End, "{name}");
    }
    assert_eq!(stream("chat-stream-text.sse").text, "Hello!");
    assert_eq!(
        stream("chat-stream-usage.sse").end,
        Some((Stop::End, used(11, 5)))
    );
}

#[test]
fn deltas_of_a_finished_call_are_ignored() {
    let (a, b) = (call("a", "f", "{}"), call("b", "g", "{}"));
    let begin = |index: u64, id: &str, name: &str| {
        pieces(json!([{"index": index, "id": id, "function": {"name": name, "arguments": "{}"}}]))
    };
    for late in [
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}),
        json!({"index": 0, "function": {"arguments": ""}}),
    ] {
        let output = chat(&[
            begin(0, "a", "f"),
            begin(1, "b", "g"),
            pieces(json!([late])),
            finish("tool_calls"),
        ]);
        assert_eq!(output.calls, [a.clone(), b.clone()], "{late}");
    }
    let item = |id: &str, call: &str, name: &str, arguments: &str| json!({"type": "function_call", "id": id, "call_id": call, "name": name, "arguments": arguments});
    let event = |kind: &str, index: u64, item: Value| json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
    let delta = |index: u64, text: &str| json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": text});
    let output = parse_events(
        Protocol::Responses,
        &[
            event("added", 0, item("x", "a", "f", "")),
            delta(0, "{}"),
            event("added", 1, item("y", "b", "g", "")),
            delta(1, "{}"),
            event("done", 0, item("x", "a", "f", "{}")),
            event("done", 1, item("y", "b", "g", "{}")),
            json!({"type": "response.completed", "response": {"status": "completed"}}),
        ],
    );
    assert_eq!(output.calls, [a, b]);
}

#[test]
fn streams_of_thoughts() {
    let output = stream("chat-stream-reasoning.sse");
    assert_eq!(
        (output.reasoning.as_str(), output.text.as_str()),
        ("Compare digits.", "9.8 is larger.")
    );
    let output = stream("responses-stream-reasoning-summary.sse");
    assert_eq!(output.reasoning, "Compare digit by digit.\n\n9.80 > 9.11.");
    assert_eq!(
        output.end,
        Some((
            Stop::End,
            Some(Usage {
                input: 21,
                output: 64,
                reasoning: 48,
                ..Usage::default()
            })
        ))
    );
    let output = stream("messages-stream-thinking.sse");
    assert_eq!(
        (output.reasoning.as_str(), output.signature.as_str()),
        ("Compare 9.80 with 9.11.", "c2lnbmF0dXJl")
    );
}

#[test]
fn streams_of_calls() {
    let cities = [
        call("call_a", "get_weather", r#"{"city":"Oslo"}"#),
        call("call_b", "get_weather", r#"{"city":"Rome"}"#),
    ];
    let output = stream("chat-stream-tool-calls.sse");
    assert_eq!(output.calls, cities);
    assert_eq!(output.end, Some((Stop::ToolCalls, used(48, 36))));
    let output = stream("messages-stream-tool-use.sse");
    let arguments: Vec<_> = output
        .calls
        .iter()
        .map(|(_, _, arguments)| arguments.as_str())
        .collect();
    assert_eq!(arguments, [r#"{"city": "Oslo"}"#, r#"{"city":"Rome"}"#]);
    assert_eq!(output.end.unwrap().0, Stop::ToolCalls);
    assert_eq!(
        stream("responses-stream-parallel-function-calls.sse")
            .calls
            .len(),
        2
    );
    assert_eq!(
        stream("responses-stream-empty-arguments.sse").calls,
        [call("call_p", "ping", "{}")]
    );
}

#[test]
fn complete_replies_equal_their_streams() {
    for (reply, event) in [
        ("chat-response-text.json", "chat-stream-text.sse"),
        (
            "messages-response-tool-use.json",
            "messages-stream-tool-use.sse",
        ),
        (
            "responses-response-refusal.json",
            "responses-stream-refusal.sse",
        ),
    ] {
        let (reply, stream) = (complete_reply(reply), stream(event));
        assert_eq!(reply.end.unwrap().0, stream.end.unwrap().0, "{event}");
        assert_eq!(
            reply.refusal.is_empty(),
            stream.refusal.is_empty(),
            "{event}"
        );
        assert_eq!(reply.calls.is_empty(), stream.calls.is_empty(), "{event}");
    }
    assert_eq!(
        complete_reply("chat-response-length.json").end.unwrap().0,
        Stop::MaxTokens
    );
    assert_eq!(
        complete_reply("responses-response-incomplete.json")
            .end
            .unwrap()
            .0,
        Stop::MaxTokens
    );
    assert!(
        matches!(complete_reply("messages-response-stop-sequence.json").end, Some((Stop::StopText(text), _)) if !text.is_empty())
    );
    assert!(
        !complete_reply("messages-response-thinking.json")
            .signature
            .is_empty()
    );
    assert_eq!(
        complete_reply("responses-response-parallel-function-calls.json")
            .calls
            .len(),
        2
    );
    let failed = reply(
        Protocol::Responses,
        &fixture("responses-response-failed.json"),
    );
    assert!(
        matches!(failed, Err(EngineError::Upstream(_))),
        "{failed:?}"
    );
}

#[test]
fn a_reader_can_be_sent() {
    fn is_send<T: Send>(_: &T) -> bool {
        true
    }
    assert!(is_send(&Reader::new(Protocol::Chat)));
}
