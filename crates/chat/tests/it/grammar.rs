//! Violations of the stream grammar.

use serde_json::{Value, json};
use sluicegate_chat::{Event, Grammar, Offence};

use crate::fold;

/// Returns a chunk with these choices.
fn chunk(choices: Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices})
}

fn piece(index: u32, delta: Value) -> Value {
    chunk(json!([{"index": index, "delta": delta, "finish_reason": null}]))
}

fn first(index: u32) -> Value {
    piece(index, json!({"role": "assistant", "content": ""}))
}

fn text(index: u32) -> Value {
    piece(index, json!({"content": "a"}))
}

fn call(index: u32, function: Value) -> Value {
    piece(
        0,
        json!({"tool_calls": [{"index": index, "function": function}]}),
    )
}

fn open(index: u32) -> Value {
    let mut chunk = call(index, json!({"name": "f", "arguments": ""}));
    chunk["choices"][0]["delta"]["tool_calls"][0]["id"] = "call_1".into();
    chunk
}

fn last(index: u32) -> Value {
    chunk(json!([{"index": index, "delta": {}, "finish_reason": "stop"}]))
}

fn usage() -> Value {
    let mut chunk = chunk(json!([]));
    chunk["usage"] = json!({"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12});
    chunk
}

fn done() -> Value {
    json!("[DONE]")
}

fn events(stream: &[Value]) -> Vec<Event> {
    let data = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    stream
        .iter()
        .map(|value| Event::read(&data(value)).unwrap())
        .collect()
}

/// Returns the first violation of a stream, its end included.
fn offence(stream: &[Value]) -> Option<Offence> {
    let mut grammar = Grammar::default();
    let pushed = events(stream)
        .iter()
        .try_for_each(|event| grammar.push(event));
    pushed.and_then(|()| grammar.finish()).err()
}

#[test]
fn order_is_kept() {
    assert_eq!(
        offence(&[first(0), text(0), last(0), usage(), done()]),
        None
    );
    assert_eq!(
        offence(&[first(0), first(1), text(0), last(1), last(0), done()]),
        None
    );
    assert_eq!(offence(&[]), Some(Offence::Truncated));
    assert_eq!(offence(&[text(0)]), Some(Offence::Opening));
    assert_eq!(offence(&[first(1)]), Some(Offence::Opening));
    assert_eq!(offence(&[first(0), first(0)]), Some(Offence::RepeatedRole));
    assert_eq!(
        offence(&[first(0), last(0), text(0)]),
        Some(Offence::AfterFinish)
    );
    assert_eq!(offence(&[first(0), last(0)]), Some(Offence::Truncated));
    assert_eq!(
        offence(&[first(0), last(0), done(), done()]),
        Some(Offence::AfterEnd)
    );
    assert_eq!(
        offence(&[first(0), last(0), done(), text(0)]),
        Some(Offence::AfterEnd)
    );
}

#[test]
fn only_a_finished_answer_is_done() {
    assert_eq!(offence(&[done()]), Some(Offence::Unfinished));
    assert_eq!(offence(&[first(0), done()]), Some(Offence::Unfinished));
    assert_eq!(
        offence(&[first(0), first(1), last(0), done()]),
        Some(Offence::Unfinished)
    );
    for (stream, may_end) in [
        (vec![], false),
        (vec![first(0)], false),
        (vec![first(0), last(0)], true),
        (vec![first(0), last(0), usage()], true),
        (vec![first(0), last(0), done()], false),
    ] {
        let mut grammar = Grammar::default();
        events(&stream)
            .iter()
            .for_each(|event| grammar.push(event).unwrap());
        assert_eq!(grammar.may_end(), may_end, "{stream:?}");
    }
}

#[test]
fn every_chunk_is_of_the_same_completion() {
    for (member, value) in [
        ("id", json!("chatcmpl-2")),
        ("created", json!(2)),
        ("model", json!("n")),
    ] {
        let mut other = text(0);
        other[member] = value;
        assert_eq!(
            offence(&[first(0), other]),
            Some(Offence::Identity),
            "{member}"
        );
    }
}

#[test]
fn usage_comes_once_and_last() {
    assert_eq!(offence(&[first(0), usage()]), Some(Offence::Usage));
    assert_eq!(
        offence(&[first(0), last(0), usage(), usage()]),
        Some(Offence::Usage)
    );
    let mut none = usage();
    none["usage"] = Value::Null;
    assert_eq!(
        offence(&[first(0), last(0), none.clone(), usage(), done()]),
        None
    );
    assert_eq!(offence(&[first(0), none]), Some(Offence::Usage));
    assert_eq!(
        offence(&[first(0), last(0), usage(), first(1)]),
        Some(Offence::AfterFinish)
    );
}

#[test]
fn calls_open_in_order() {
    let arguments = |index| call(index, json!({"arguments": "{}"}));
    assert_eq!(
        offence(&[
            first(0),
            open(0),
            arguments(0),
            open(1),
            arguments(1),
            last(0),
            done()
        ]),
        None
    );
    assert_eq!(offence(&[first(0), open(1)]), Some(Offence::Call));
    assert_eq!(offence(&[first(0), open(0), open(0)]), Some(Offence::Call));
    assert_eq!(offence(&[first(0), arguments(0)]), Some(Offence::Call));
    assert_eq!(
        offence(&[first(0), open(0), arguments(1)]),
        Some(Offence::Call)
    );
}

#[test]
fn answers_are_bounded() {
    let many: Vec<_> = (0..=128).map(first).collect();
    assert_eq!(offence(&many[..128]), Some(Offence::Truncated));
    assert_eq!(offence(&many), Some(Offence::Opening));
}

#[test]
fn a_failure_ends_the_stream_and_is_no_completion() {
    let failure = json!({"error": {"message": "No.", "type": "server_error", "param": null, "code": "server_error"}});
    let failed = [first(0), text(0), failure.clone()];
    assert_eq!(offence(&failed), None);
    assert!(fold(&events(&failed)).is_err());
    assert_eq!(
        offence(&[first(0), failure, text(0)]),
        Some(Offence::AfterEnd)
    );
}
