//! Tests of parsing upstream streams and replies, valid ones and deviations.

use engine::{EngineError, Rejection, Stop, Usage};
use serde_json::{Value, json};
use sluicegate_translate::outbound::{Protocol, Reader, reply};

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
fn what_comes_of_a_call_that_has_ended_means_nothing() {
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
fn streams_that_were_cut_or_refused() {
    for name in [
        "chat-stream-length.sse",
        "responses-stream-incomplete.sse",
        "messages-stream-max-tokens.sse",
    ] {
        assert_eq!(stream(name).end.unwrap().0, Stop::MaxTokens, "{name}");
    }
    let output = stream("responses-stream-refusal.sse");
    assert!(!output.refusal.is_empty() && output.text.is_empty());
}

#[test]
fn streams_that_fail() {
    let fails = |name: &str| {
        parse_stream(protocol(name), &data(&fixture(name)))
            .1
            .unwrap_err()
    };
    let streams = ["chat-stream-error.sse", "responses-stream-failed-mid.sse"];
    let error_events = [
        "responses-upstream-error-event-flat.sse",
        "responses-upstream-error-event-nested.sse",
    ];
    for name in streams.into_iter().chain(error_events) {
        assert!(
            matches!(fails(name), EngineError::Upstream(text) if text.contains("server_error")),
            "{name}"
        );
    }
    assert!(matches!(
        fails("messages-stream-error.sse"),
        EngineError::Overloaded { .. }
    ));
    assert!(matches!(
        fails("responses-stream-concurrency-limit.sse"),
        EngineError::RateLimited { .. }
    ));
    assert!(matches!(
        fails("responses-stream-truncated-invalid.sse"),
        EngineError::Truncated(_)
    ));
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
fn the_table_of_ends() {
    let table: Value = serde_json::from_slice(&fixture("translate-stop-reasons.json")).unwrap();
    for row in table["rows"].as_array().unwrap() {
        let meaning = row["meaning"].as_str().unwrap();
        let called = meaning == "tool call";
        let end = |output: ModelOutput| output.end.unwrap().0;
        let (chat_end, messages_end, responses_end) = match meaning {
            "natural end" => (Stop::End, Stop::End, Stop::End),
            "custom stop string hit" => (Stop::End, Stop::StopText("x".to_owned()), Stop::End),
            "output limit" => (Stop::MaxTokens, Stop::MaxTokens, Stop::MaxTokens),
            "context window full" => (Stop::MaxTokens, Stop::ContextFull, Stop::MaxTokens),
            "tool call" => (Stop::ToolCalls, Stop::ToolCalls, Stop::ToolCalls),
            "refused or filtered" => (Stop::Refused, Stop::Refused, Stop::Refused),
            "paused turn (upstream only)" => (Stop::End, Stop::Paused, Stop::End),
            _ => continue,
        };
        let piece = json!([{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]);
        let content = if called {
            pieces(piece)
        } else {
            delta(json!({"content": "a"}))
        };
        assert_eq!(
            end(chat(&[content, finish(row["chat"].as_str().unwrap())])),
            chat_end
        );
        let kind = if called { "tool_use" } else { "text" };
        let message = [
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": kind, "id": "c", "name": "f"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": row["messages"], "stop_sequence": "x"}}),
            json!({"type": "message_stop"}),
        ];
        assert_eq!(
            end(parse_events(Protocol::Messages, &message)),
            messages_end
        );
        let output =
            json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]);
        let (status, reason) = (&row["responses"]["status"], &row["responses"]["reason"]);
        let response = json!({"status": status, "output": if called { output } else { json!([]) },
            "incomplete_details": if reason.is_null() { Value::Null } else { json!({ "reason": reason }) }});
        let terminal =
            json!({"type": format!("response.{}", status.as_str().unwrap()), "response": response});
        assert_eq!(
            end(parse_events(Protocol::Responses, &[terminal])),
            responses_end
        );
    }
}

#[test]
fn the_table_of_usage() {
    let table: Value = serde_json::from_slice(&fixture("translate-usage.json")).unwrap();
    let all = Usage {
        input: 100,
        cache_read: 40,
        cache_write: 10,
        output: 30,
        reasoning: 12,
    };
    let usage = |output: ModelOutput| output.end.unwrap().1.unwrap();
    let terminal = json!({"type": "response.completed", "response": {"usage": table["responses"]}});
    assert_eq!(usage(parse_events(Protocol::Responses, &[terminal])), all);
    let mut counts = table["chat"].clone();
    let more = table["chat_upstream_may_also_have"].as_object().unwrap();
    more.iter()
        .for_each(|(name, details)| counts[name] = details.clone());
    assert_eq!(
        usage(chat(&[finish("stop"), json!({ "usage": counts })])),
        Usage {
            cache_write: 0,
            ..all
        }
    );
    let mut counts = table["messages"].clone();
    counts["output_tokens_details"] = json!({"thinking_tokens": 12});
    let message = [
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counts}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(usage(parse_events(Protocol::Messages, &message)), all);
}

#[test]
fn counts_of_the_end_correct_those_of_the_beginning() {
    let output = parse_events(
        Protocol::Messages,
        &[
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "cache_read_input_tokens": 2, "output_tokens": 1}}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ],
    );
    assert_eq!(
        output.end,
        Some((
            Stop::End,
            Some(Usage {
                input: 9,
                cache_read: 2,
                output: 9,
                ..Usage::default()
            })
        ))
    );
}

#[test]
fn chat_servers_deviate() {
    let output = stream("chat-upstream-deviations.sse");
    assert_eq!(
        (output.reasoning.as_str(), output.text.as_str()),
        ("Compare digits.", "9.8 is larger.")
    );
    assert_eq!(output.end, Some((Stop::End, used(20, 31))));
}

#[test]
fn reasoning_under_both_names_is_emitted_once() {
    let output = chat(&[
        delta(json!({"reasoning_content": "a", "reasoning": "a", "content": null})),
        finish("stop"),
    ]);
    assert_eq!(output.reasoning, "a");
    assert_eq!(output.text, "");
}

#[test]
fn usage_counts_wherever_it_comes() {
    let counts = |prompt: u64| json!({"prompt_tokens": prompt, "completion_tokens": 1});
    let with = |mut chunk: Value, prompt| {
        chunk["usage"] = counts(prompt);
        chunk
    };
    let before = chat(&[with(delta(json!({"content": "a"})), 1), finish("stop")]);
    assert_eq!(before.end, Some((Stop::End, used(1, 1))));
    let every = chat(&[
        with(delta(json!({"content": "a"})), 1),
        with(finish("stop"), 2),
        with(json!({"choices": []}), 3),
    ]);
    assert_eq!(every.end, Some((Stop::End, used(3, 1))));
    let null_behind = chat(&[
        with(finish("stop"), 2),
        json!({"choices": [], "usage": null}),
    ]);
    assert_eq!(null_behind.end, Some((Stop::End, used(2, 1))));
}

#[test]
fn calls_without_an_index() {
    let by_id = chat(&[
        pieces(json!([{"id": "a", "function": {"name": "f", "arguments": "{\"x\""}}])),
        pieces(json!([{"id": "a", "function": {"name": "f", "arguments": ":1}"}}])),
        pieces(json!([{"id": "b", "function": {"name": "g", "arguments": "{}"}}])),
        finish("tool_calls"),
    ]);
    assert_eq!(
        by_id.calls,
        [call("a", "f", "{\"x\":1}"), call("b", "g", "{}")]
    );
    let by_order = chat(&[
        pieces(json!([{"function": {"name": "f", "arguments": ""}}])),
        pieces(json!([{"function": {"arguments": "{}"}}])),
        pieces(json!([{"function": {"name": "g", "arguments": {"y": [1, 2.50]}}}])),
        finish("stop"),
    ]);
    let calls: Vec<_> = by_order
        .calls
        .iter()
        .map(|(_, name, arguments)| (name.as_str(), arguments.as_str()))
        .collect();
    assert_eq!(calls, [("f", "{}"), ("g", "{\"y\":[1,2.5]}")]);
    assert_eq!(by_order.end.unwrap().0, Stop::ToolCalls);
    let by_position = chat(&[
        pieces(
            json!([{"id": "a", "function": {"name": "f"}}, {"id": "b", "function": {"name": "g"}}]),
        ),
        pieces(
            json!([{"function": {"arguments": "{\"x\":1}"}}, {"function": {"arguments": "{\"x\":2}"}}]),
        ),
        finish("tool_calls"),
    ]);
    assert_eq!(
        by_position.calls,
        [call("a", "f", "{\"x\":1}"), call("b", "g", "{\"x\":2}")]
    );
}

#[test]
fn ids_that_are_made_up_are_another_for_each_call_of_each_answer() {
    let ids = |answer: &str| {
        let mut calls = pieces(json!([{"function": {"name": "f"}}, {"function": {"name": "g"}}]));
        calls["id"] = json!(answer);
        chat(&[calls, finish("stop")])
            .calls
            .into_iter()
            .map(|(id, ..)| id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("one"), ids("one"));
    let mut all = [ids("one"), ids("two")].concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4, "{all:?}");
}

#[test]
fn calls_that_are_all_numbered_zero() {
    let output = chat(&[
        pieces(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])),
        pieces(json!([{"index": 0, "id": "b", "function": {"name": "f", "arguments": "{}"}}])),
        finish("tool_calls"),
    ]);
    assert_eq!(output.calls, [call("a", "f", "{}"), call("b", "f", "{}")]);
}

#[test]
fn interleaved_calls_are_emitted_one_by_one_in_the_order_in_which_they_began() {
    let output = chat(&[
        pieces(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}])),
        pieces(json!([{"index": 2, "id": "c", "function": {"name": "h", "arguments": "{\"z\":"}}])),
        pieces(json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{\"y\":"}}])),
        delta(json!({"content": "Wait."})),
        pieces(
            json!([{"index": 2, "function": {"arguments": "3}"}}, {"index": 0, "function": {"arguments": "1}"}}]),
        ),
        pieces(json!([{"index": 1, "function": {"arguments": "2}"}}])),
        finish("tool_calls"),
    ]);
    assert_eq!(
        output.calls,
        [
            call("a", "f", "{\"x\":1}"),
            call("c", "h", "{\"z\":3}"),
            call("b", "g", "{\"y\":2}")
        ]
    );
    assert_eq!(output.text, "Wait.");
}

#[test]
fn a_call_is_emitted_at_once_when_the_one_before_is_complete() {
    let (mut reader, mut out) = (Reader::new(Protocol::Chat), Vec::new());
    let mut emitted = |event: Value| {
        out.clear();
        reader
            .event(event.to_string().as_bytes(), &mut out)
            .unwrap();
        out.len()
    };
    assert_eq!(
        emitted(pieces(
            json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])
        )),
        2
    );
    assert_eq!(
        emitted(pieces(
            json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}}])
        )),
        2
    );
    assert_eq!(emitted(delta(json!({"content": "held back"}))), 0);
    assert_eq!(emitted(finish("length")), 1);
}

#[test]
fn a_call_without_arguments_has_an_empty_object_unless_it_was_cut() {
    let started =
        pieces(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]));
    assert_eq!(
        chat(&[started.clone(), finish("tool_calls")]).calls,
        [call("a", "f", "{}")]
    );
    let output = chat(&[started, finish("length")]);
    assert_eq!(output.calls, [call("a", "f", "")]);
    assert_eq!(output.end, Some((Stop::MaxTokens, None)));
}

#[test]
fn choices_after_the_first_are_ignored() {
    let other =
        json!({"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}]});
    let output = chat(&[other, delta(json!({"content": "a"})), finish("stop")]);
    assert_eq!(
        (output.text.as_str(), output.end),
        ("a", Some((Stop::End, None)))
    );
}

#[test]
fn a_completion_as_a_stream_of_one_event() {
    let body: Value = serde_json::from_slice(&fixture("chat-response-tool-calls.json")).unwrap();
    assert_eq!(
        chat(&[body]),
        complete_reply("chat-response-tool-calls.json")
    );
}

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

/// A complete reply states its type and that it is finished.
#[test]
fn s16_a_reply_that_does_not_say_that_it_is_whole_is_none() {
    for (protocol, name, member) in [
        (
            Protocol::Responses,
            "responses-response-text.json",
            "status",
        ),
        (Protocol::Messages, "messages-response-text.json", "type"),
        (
            Protocol::Messages,
            "messages-response-text.json",
            "stop_reason",
        ),
    ] {
        let complete: Value = serde_json::from_slice(&fixture(name)).unwrap();
        assert!(reply(protocol, complete.to_string().as_bytes()).is_ok());
        for other in [None, Some(json!("in_progress")), Some(json!(null))] {
            let mut changed = complete.clone();
            match &other {
                Some(other) => changed[member] = other.clone(),
                None => drop(changed.as_object_mut().unwrap().remove(member)),
            }
            let read = reply(protocol, changed.to_string().as_bytes());
            assert!(read.is_err(), "{member} {other:?}");
        }
    }
}

#[test]
fn the_type_of_the_last_event_decides() {
    let end = |kind: &str, response: Value| {
        parse_events(
            Protocol::Responses,
            &[json!({"type": kind, "response": response})],
        )
        .end
        .unwrap()
        .0
    };
    assert_eq!(end("response.incomplete", json!({})), Stop::MaxTokens);
    assert_eq!(
        end("response.completed", json!({"status": null})),
        Stop::End
    );
    for (kind, response) in [
        ("response.completed", json!({"status": "failed"})),
        ("response.completed", json!({"status": "cancelled"})),
        ("response.completed", json!({"error": {"code": "x"}})),
        (
            "response.completed",
            json!({"status": "completed", "incomplete_details": {"reason": "max_output_tokens"}}),
        ),
        ("response.incomplete", json!({"status": "in_progress"})),
        ("response.incomplete", json!({"status": "completed"})),
    ] {
        let failed = failed(
            Protocol::Responses,
            &[json!({"type": kind, "response": response})],
        );
        assert!(matches!(failed, EngineError::Upstream(_)), "{failed:?}");
    }
}

/// A stream without a stop reason may have been truncated.
#[test]
fn an_end_without_a_reason_is_none() {
    for reason in [json!({"stop_reason": null}), json!({})] {
        let delta = json!({"type": "message_delta", "delta": reason});
        let failed = failed(
            Protocol::Messages,
            &[start(), delta, json!({"type": "message_stop"})],
        );
        assert!(matches!(failed, EngineError::Truncated(_)), "{failed:?}");
    }
}

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

#[test]
fn the_last_event_of_a_response_adds_what_its_stream_lacked() {
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

#[test]
fn done_means_nothing_to_others_than_chat() {
    let events = [
        r#"{"type":"response.completed","response":{}}"#,
        "[DONE]",
        "{",
    ];
    assert_eq!(
        parse_ok(Protocol::Responses, &events).end,
        Some((Stop::End, None))
    );
    let reason = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let start = r#"{"type":"message_start","message":{}}"#;
    let events = [
        "[DONE]",
        start,
        "",
        " ",
        reason,
        r#"{"type":"message_stop"}"#,
    ];
    assert_eq!(
        parse_ok(Protocol::Messages, &events).end,
        Some((Stop::End, None))
    );
}

/// Data after the terminal event is ignored. Content between the finish reason and the terminal
/// event may be that of another answer.
#[test]
fn s07_the_first_end_counts_and_content_after_the_finish_reason_is_a_failure() {
    let content = || delta(json!({"content": "a"}));
    for late in [
        content(),
        finish("length"),
        json!({"error": {"message": "late"}}),
    ] {
        let error = failed(Protocol::Chat, &[content(), finish("stop"), late.clone()]);
        assert!(
            matches!(error, EngineError::Upstream(_)),
            "{late}: {error:?}"
        );
        let events = [
            content().to_string(),
            finish("stop").to_string(),
            "[DONE]".to_owned(),
            late.to_string(),
        ];
        assert_eq!(
            parse_ok(Protocol::Chat, &events).end,
            Some((Stop::End, None)),
            "{late}"
        );
    }
    assert_eq!(
        chat(&[
            content(),
            finish("stop"),
            finish("stop"),
            delta(json!({"content": ""}))
        ])
        .text,
        "a"
    );
}

/// Events after the terminal one are ignored. Content between the stop reason and the terminal
/// event may be that of another answer.
#[test]
fn s07_what_comes_after_the_end_of_a_message_is_left_out() {
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

#[test]
fn what_is_no_event_is_a_failure() {
    for (protocol, event) in [
        (Protocol::Chat, "{"),
        (Protocol::Chat, "[]"),
        (Protocol::Chat, "\"text\""),
        (Protocol::Chat, r#"{"choices":{}}"#),
        (
            Protocol::Chat,
            r#"{"choices":[{"index":2147483648,"delta":{}}]}"#,
        ),
        (
            Protocol::Chat,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":4096,"id":"a"}]}}]}"#,
        ),
        (Protocol::Chat, r#"{"choices":[{"delta":{"content":5}}]}"#),
        (Protocol::Responses, r#"{"delta":"a"}"#),
        (
            Protocol::Responses,
            r#"{"type":"response.output_text.delta","output_index":0}"#,
        ),
        (
            Protocol::Responses,
            r#"{"type":"response.output_text.delta","output_index":4096,"delta":"a"}"#,
        ),
        (
            Protocol::Responses,
            r#"{"type":"response.output_item.done"}"#,
        ),
        (Protocol::Responses, r#"{"type":"response.completed"}"#),
        (Protocol::Messages, "[DONE"),
        (Protocol::Messages, r#"{"index":0}"#),
        (
            Protocol::Messages,
            r#"{"type":"content_block_delta","index":0}"#,
        ),
        (
            Protocol::Messages,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}"#,
        ),
        (Protocol::Messages, r#"{"type":"message_delta"}"#),
    ] {
        let (events, result) = parse_stream(protocol, &[event]);
        let error = result.unwrap_err().to_string();
        assert!(
            error.starts_with("the upstream failed: malformed event: "),
            "{event}: {error}"
        );
        assert!(events.is_empty());
    }
}

#[test]
fn a_failure_does_not_quote_model_output() {
    let error = failed(
        Protocol::Chat,
        &[json!({"choices": [{"index": "a secret of the user"}]})],
    );
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_stream_without_its_end_is_truncated() {
    let text = delta(json!({"content": "a"})).to_string();
    for events in [vec![], vec![text.as_str()], vec![text.as_str(), "[DONE]"]] {
        assert!(
            matches!(
                parse_stream(Protocol::Chat, &events).1,
                Err(EngineError::Truncated(_))
            ),
            "{events:?}"
        );
    }
    let stopped = [
        start(),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
    ];
    assert!(matches!(
        failed(Protocol::Messages, &stopped),
        EngineError::Truncated(_)
    ));
}

#[test]
fn a_body_with_status_200_can_be_a_failure() {
    use EngineError::{Overloaded, RateLimited, Rejected, Truncated, Upstream};
    let error = |body: Value| reply(Protocol::Chat, body.to_string().as_bytes()).unwrap_err();
    assert!(matches!(
        error(json!({"error": {"code": "rate_limit_exceeded"}})),
        RateLimited { .. }
    ));
    assert!(matches!(
        error(json!({"error": {"code": 429, "message": "slow"}})),
        RateLimited { .. }
    ));
    assert!(matches!(
        error(json!({"type": "error", "error": {"type": "overloaded_error"}})),
        Overloaded { .. }
    ));
    assert!(matches!(
        error(
            json!({"error": {"code": "context_length_exceeded", "type": "invalid_request_error"}})
        ),
        Rejected {
            why: Rejection::ContextLength,
            ..
        }
    ));
    assert!(matches!(
        error(json!({"error": {"code": "content_policy_violation"}})),
        Rejected {
            why: Rejection::ContentPolicy,
            ..
        }
    ));
    assert!(matches!(
        error(json!({"object": "error", "message": "bad field", "type": "BadRequestError", "code": 400})),
        Rejected { why: Rejection::Invalid, message, .. } if message == "bad field"
    ));
    assert!(
        matches!(error(json!({"error": "it broke"})), Upstream(text) if text.contains("no code given"))
    );
    assert!(matches!(
        error(json!({"error": {"code": "invalid_api_key", "type": "invalid_request_error"}})),
        EngineError::Misconfigured(_)
    ));
    assert!(matches!(
        error(json!({"choices": [{"message": {"content": "a"}}]})),
        Truncated(_)
    ));
    for body in [&b"<html>"[..], b"", b"[]", b"null"] {
        for protocol in [Protocol::Responses, Protocol::Chat, Protocol::Messages] {
            assert!(matches!(reply(protocol, body), Err(Upstream(_))));
        }
    }
}

#[test]
fn a_reader_can_be_sent() {
    fn is_send<T: Send>(_: &T) -> bool {
        true
    }
    assert!(is_send(&Reader::new(Protocol::Chat)));
}

/// White space around an event is that of JSON (RFC 8259, section 2), which has no form feed.
#[test]
fn only_white_space_of_json_may_stand_around_an_event() {
    let stream = data(&fixture("messages-stream-text.sse"));
    let spaced: Vec<_> = stream
        .iter()
        .map(|data| format!(" \t\r\n{data}\t "))
        .collect();
    assert_eq!(
        parse_ok(Protocol::Messages, &spaced),
        parse_ok(Protocol::Messages, &stream)
    );
    for strange in ["\u{0C}", "\u{0B}", "\u{A0}", "\0"] {
        let mut invalid = stream.clone();
        invalid[1].push_str(strange);
        let (_, result) = parse_stream(Protocol::Messages, &invalid);
        assert!(
            matches!(result, Err(EngineError::Upstream(_))),
            "{strange:?}: {result:?}"
        );
    }
}
