//! Answers of servers that bend Chat Completions.

use engine::{EngineError, Stop};
use serde_json::{Value, json};
use sluicegate_translate::outbound::Reader;
use vendor::Protocol;

use super::{call, chat, complete_reply, delta, failed, finish, pieces, stream, used};
use crate::streams::fixture;

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
fn generated_call_ids_are_unique_per_call_and_reply() {
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
fn interleaved_calls_are_emitted_in_order_of_their_start() {
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
    assert_eq!(
        emitted(pieces(
            json!([{"index": 1, "function": {"arguments": "}"}}])
        )),
        1
    );
    assert_eq!(emitted(finish("tool_calls")), 1);
}

/// The call is not the end of the answer, so it was not the limit that has cut it.
#[test]
fn text_after_a_call_that_is_cut_is_a_failure() {
    let events = [
        pieces(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}])),
        delta(json!({"content": "Done."})),
        finish("length"),
    ];
    let EngineError::Upstream(why) = failed(Protocol::Chat, &events) else {
        panic!("the upstream is at fault")
    };
    assert_eq!(
        why,
        "malformed event: a tool call whose arguments are not JSON"
    );
}

#[test]
fn call_without_arguments_gets_an_empty_object_unless_truncated() {
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

/// vLLM (<https://github.com/vllm-project/vllm/pull/45807>) and SGLang name the stop sequence that
/// matched, or the id of a token: <https://github.com/agentgateway/agentgateway/pull/3283>.
#[test]
fn a_stop_sequence_that_the_server_names_is_the_end() {
    let end = |member: &str, value: Value, reason: &str| {
        let mut last = finish(reason);
        last["choices"][0][member] = value;
        let events = [delta(json!({"content": "Hi."})), last];
        chat(&events).end.unwrap().0
    };
    for member in ["stop_reason", "matched_stop"] {
        let named = Stop::StopText("END".to_owned());
        assert_eq!(end(member, json!("END"), "stop"), named);
        assert_eq!(end(member, json!(151_645), "stop"), Stop::End);
        assert_eq!(end(member, Value::Null, "stop"), Stop::End);
        assert_eq!(end(member, json!("END"), "length"), Stop::MaxTokens);
        // The finish reason of another protocol.
        assert_eq!(end(member, json!("end_turn"), "stop"), Stop::End);
        let reply = json!({"object": "chat.completion", "choices": [{"index": 0,
            "message": {"content": "Hi."}, "finish_reason": "stop", member: "END"}]});
        let reply =
            sluicegate_translate::outbound::reply(Protocol::Chat, reply.to_string().as_bytes());
        let output = crate::streams::ModelOutput::of(&reply.unwrap());
        assert_eq!(output.end.unwrap().0, named);
    }
}

/// <https://github.com/NousResearch/hermes-agent/pull/67777>. The new id is half of the SHA-256 of
/// `call_1 2`, as in a history.
#[test]
fn the_second_call_with_an_id_gets_one_of_its_own() {
    let output = chat(&[
        pieces(json!([{"index": 0, "id": "call_1", "function": {"name": "f", "arguments": "{}"}}])),
        pieces(json!([{"index": 1, "id": "call_1", "function": {"name": "g", "arguments": ""}}])),
        pieces(json!([{"index": 1, "id": "call_1", "function": {"arguments": "{\"x\":1}"}}])),
        finish("tool_calls"),
    ]);
    let own = "call_f1d2bca1177d99ffdeff9d1996330aa9";
    assert_eq!(
        output.calls,
        [call("call_1", "f", "{}"), call(own, "g", "{\"x\":1}")]
    );
}

/// Models write null for a call without parameters:
/// <https://github.com/kagent-dev/kagent/issues/2851>.
#[test]
fn arguments_that_are_null_are_an_empty_object() {
    for cut in [
        &["null"][..],
        &["nu", "ll"],
        &["", " null\n"],
        &["n", "u", "l", "l"],
    ] {
        let mut events = vec![pieces(
            json!([{"index": 0, "id": "a", "function": {"name": "f"}}]),
        )];
        let piece = |text: &&str| pieces(json!([{"index": 0, "function": {"arguments": text}}]));
        events.extend(cut.iter().map(piece));
        events.push(finish("tool_calls"));
        assert_eq!(chat(&events).calls, [call("a", "f", "{}")], "{cut:?}");
    }
    let cut = chat(&[
        pieces(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "nul"}}])),
        finish("length"),
    ]);
    assert_eq!(cut.calls, [call("a", "f", "nul")]);
}

/// OpenRouter: <https://openrouter.ai/docs/api-reference/overview>.
#[test]
fn an_error_of_a_choice_is_one_of_the_answer() {
    let message = "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens \
        (39000 in the messages, 1000 in the completion).";
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error",
        "error": {"code": 400, "message": message}}]});
    let EngineError::Rejected { why, .. } = failed(Protocol::Chat, &[chunk]) else {
        panic!("the request is rejected")
    };
    let engine::Rejection::ContextLength(sizes) = why else {
        panic!("the prompt is too long")
    };
    assert_eq!(
        (sizes.prompt, sizes.output, sizes.limit),
        (Some(39_000), Some(1000), Some(32_768))
    );
}
