//! The lenient reader: forms that it tolerates, ends that it refuses, and its law.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_messages::lenient::{
    Answer, Call, Collector, Kind, ReadError, Reader, Stop, Tokens, collect, reported_tokens,
};
use sluicegate_messages::{Encoder, Head, StopReason, Usage};

use crate::fold;

/// Reads a stream of these events.
fn read(events: &[Value]) -> Result<Answer, ReadError> {
    let mut collector = Collector::default();
    for event in events {
        collector.event(&event.to_string())?;
    }
    collector.finish()
}

fn start() -> Value {
    json!({"type": "message_start", "message": {}})
}

fn open(index: u32, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn close(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn reason(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}})
}

fn stop() -> Value {
    json!({"type": "message_stop"})
}

fn tool() -> Value {
    json!({"type": "tool_use", "id": "a", "name": "f"})
}

fn input(json: &str) -> Value {
    json!({"type": "input_json_delta", "partial_json": json})
}

/// A stream with these events between its start and its stop reason.
fn stream(content: &[Value], word: &str) -> Vec<Value> {
    let end = [reason(word), stop()];
    [&[start()], content, &end].concat()
}

fn contradicts(events: &[Value]) -> bool {
    let read = read(events);
    matches!(
        read,
        Err(ReadError::Contradiction(_) | ReadError::Call(_) | ReadError::Truncated)
    )
}

#[test]
fn stream_without_optional_members_is_read() {
    let text = [
        open(0, json!({"type": "text"})),
        delta(0, json!({"text": "Hello."})),
        close(0),
    ];
    let answer = read(&stream(&text, "end_turn")).unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.finish, answer.tokens),
        ("Hello.", Stop::EndTurn, None)
    );
}

#[test]
fn blocks_may_overlap_by_their_index() {
    let content = [
        open(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        open(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "Yes."})),
        delta(0, json!({"type": "signature_delta", "signature": ""})),
        close(0),
        close(1),
    ];
    let answer = read(&stream(&content, "end_turn")).unwrap();
    assert_eq!(
        (answer.reasoning.as_str(), answer.text.as_str()),
        ("Hm.", "Yes.")
    );
}

#[test]
fn the_input_of_a_call_comes_in_pieces_or_at_once_or_not_at_all() {
    let with_input = |input: Value| {
        let mut block = tool();
        block["input"] = input;
        block
    };
    for (content, arguments) in [
        (vec![open(0, tool()), close(0)], ""),
        (vec![open(0, with_input(json!(null))), close(0)], ""),
        (vec![open(0, with_input(json!({}))), close(0)], ""),
        (
            vec![open(0, with_input(json!({"x": 1}))), close(0)],
            "{\"x\":1}",
        ),
        (
            vec![
                open(0, with_input(json!({}))),
                delta(0, input("{\"x\"")),
                delta(0, input(":1}")),
                close(0),
            ],
            "{\"x\":1}",
        ),
    ] {
        let answer = read(&stream(&content, "tool_use")).unwrap();
        let call = Call {
            id: "a".into(),
            name: "f".into(),
            arguments: arguments.into(),
        };
        assert_eq!(
            (answer.calls, answer.finish),
            (vec![call], Stop::ToolUse),
            "{content:?}"
        );
    }
}

#[test]
fn usage_is_merged_from_every_event() {
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}});
    let middle = json!({"type": "message_delta", "usage": {"input_tokens": 7, "cache_read_input_tokens": 2}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}});
    let tokens = Tokens {
        input: 9,
        cache_read: 2,
        output: 9,
        ..Tokens::default()
    };
    assert_eq!(
        read(&[start, middle, end, stop()]).unwrap().tokens,
        Some(tokens)
    );
    let beside = json!({"type": "message_start", "message": {}, "usage": {"input_tokens": 1}});
    let tokens = read(&[beside, reason("end_turn"), stop()]).unwrap().tokens;
    assert_eq!(tokens.map(|tokens| tokens.input), Some(1));
}

/// The names of counts, and their settled values.
type Unsettled = [(&'static str, u64); 4];

/// The counts of a stream that begins and ends with these usages, and those that its last usage
/// should have.
fn counted(start: &Value, end: &Value) -> (Option<Tokens>, Option<Unsettled>) {
    let mut reader = Reader::new();
    let start = json!({"type": "message_start", "message": {"usage": start}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end});
    for event in [start, end] {
        reader.event(&event.to_string(), &mut Vec::new()).unwrap();
    }
    (reader.tokens(), reader.unsettled_usage())
}

/// Later zeros: <https://github.com/envoyproxy/ai-gateway/issues/1631>.
#[test]
fn zeros_at_the_end_do_not_replace_counts() {
    let start = json!({"input_tokens": 1500, "cache_read_input_tokens": 8000, "cache_creation_input_tokens": 0, "output_tokens": 1});
    let zeros = json!({"input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 20});
    let (tokens, unsettled) = counted(&start, &zeros);
    let expected = Tokens {
        input: 9500,
        cache_read: 8000,
        output: 20,
        ..Tokens::default()
    };
    assert_eq!(tokens, Some(expected));
    let settled = [
        ("input_tokens", 1500),
        ("cache_creation_input_tokens", 0),
        ("cache_read_input_tokens", 8000),
        ("output_tokens", 20),
    ];
    assert_eq!(unsettled, Some(settled));
    let mut same = start.clone();
    same["output_tokens"] = json!(20);
    assert_eq!(counted(&start, &same), (Some(expected), None));
    // An answer that was longer before.
    let mut longer = start;
    longer["output_tokens"] = json!(30);
    assert_eq!(counted(&longer, &zeros).0.unwrap().output, 30);
}

/// <https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#1-hour-cache-duration>.
#[test]
fn writes_for_an_hour_are_counted_apart() {
    let written = |usage: Value| {
        let reply =
            json!({"type": "message", "content": [], "stop_reason": "end_turn", "usage": usage});
        let tokens = collect(&reply.to_string()).unwrap().tokens.unwrap();
        (tokens.input, tokens.cache_write, tokens.cache_write_1h)
    };
    let both = json!({"ephemeral_5m_input_tokens": 456, "ephemeral_1h_input_tokens": 100});
    assert_eq!(
        written(
            json!({"input_tokens": 2048, "cache_read_input_tokens": 1800, "cache_creation_input_tokens": 556,
            "output_tokens": 503, "cache_creation": both})
        ),
        (4404, 556, 100)
    );
    // A server that reports the durations only.
    assert_eq!(
        written(json!({"input_tokens": 4, "cache_creation": both})),
        (560, 556, 100)
    );
    let start =
        json!({"input_tokens": 4, "cache_creation_input_tokens": 556, "cache_creation": both});
    let end = json!({"input_tokens": 4, "cache_creation_input_tokens": 556, "output_tokens": 9});
    assert_eq!(counted(&start, &end).0.unwrap().cache_write_1h, 100);
}

/// The counts of compaction: <https://docs.anthropic.com/en/docs/build-with-claude/compaction>.
#[test]
fn the_passes_of_a_model_add_up() {
    let start = json!({"input_tokens": 180_000, "output_tokens": 1});
    let end = json!({"input_tokens": 23_000, "output_tokens": 1000, "iterations": [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3500},
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1000},
    ]});
    let (tokens, unsettled) = counted(&start, &end);
    let tokens = tokens.unwrap();
    assert_eq!((tokens.input, tokens.output), (203_000, 4500));
    // For clients these are the counts of the last pass.
    assert_eq!(unsettled, None);
}

#[test]
fn counts_of_rejected_messages_are_known() {
    let usage = json!({"input_tokens": 6000, "output_tokens": 900});
    let reply =
        json!({"type": "message", "content": [], "stop_reason": "unheard_of", "usage": usage});
    assert!(collect(&reply.to_string()).is_err());
    let tokens = reported_tokens(&reply.to_string()).unwrap();
    assert_eq!((tokens.input, tokens.output), (6000, 900));
    let mut reader = Reader::new();
    let error = json!({"type": "error", "error": {"type": "api_error"}, "usage": usage});
    assert!(reader.event(&error.to_string(), &mut Vec::new()).is_err());
    assert_eq!(reader.tokens(), Some(tokens));
}

/// Servers that translate Chat Completions may keep its names.
#[test]
fn names_of_chat_completions_are_read_as_well() {
    let end = json!({"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 99, "cached_tokens": 20, "reasoning_tokens": 3});
    let tokens = counted(&json!({"input_tokens": 0, "output_tokens": 0}), &end)
        .0
        .unwrap();
    let expected = Tokens {
        input: 90,
        cache_read: 20,
        output: 9,
        reasoning: 3,
        ..Tokens::default()
    };
    assert_eq!(tokens, expected);
}

#[test]
fn repetitions_are_distinguished_from_other_events() {
    let mut reader = Reader::new();
    let mut kind = |event: &str| reader.event(event, &mut Vec::new()).unwrap();
    let start = start().to_string();
    assert_eq!(
        (kind(&start), kind(&start)),
        (Kind::Start, Kind::Repetition)
    );
    assert_eq!(kind(r#"{"type":"ping"}"#), Kind::Other);
    assert_eq!(kind(r#"{"type":"of_tomorrow"}"#), Kind::Other);
    assert_eq!(kind("[DONE]"), Kind::Repetition);
    assert_eq!(kind(&reason("end_turn").to_string()), Kind::Other);
    assert_eq!(kind(&stop().to_string()), Kind::End);
}

#[test]
fn known_stop_reasons_are_mapped_and_others_are_errors() {
    for (word, expected) in [
        ("end_turn", Stop::EndTurn),
        ("stop_sequence", Stop::StopSequence(None)),
        ("pause_turn", Stop::PauseTurn),
        ("compaction", Stop::PauseTurn),
        ("max_tokens", Stop::MaxTokens),
        ("model_context_window_exceeded", Stop::ContextFull),
        ("refusal", Stop::Refusal),
    ] {
        assert_eq!(read(&stream(&[], word)).unwrap().finish, expected);
    }
    assert_eq!(
        read(&stream(&[], "cancelled")),
        Err(ReadError::Stop("cancelled".into()))
    );
    let matched = json!({"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "x"}});
    let answer = read(&[start(), matched, stop()]).unwrap();
    assert_eq!(answer.finish, Stop::StopSequence(Some("x".into())));
}

#[test]
fn an_order_that_lost_something_is_a_failure() {
    let text = || open(0, json!({"type": "text", "text": "a"}));
    // An answer that has all but its start.
    let end = [reason("end_turn"), stop()];
    assert!(contradicts(&[&[text(), close(0)], &end[..]].concat()));
    assert!(contradicts(&end));
    // No start, no block, a block that is opened twice or never closed.
    assert!(contradicts(&[text()]));
    assert!(contradicts(&[reason("end_turn")]));
    assert!(contradicts(&[stop()]));
    assert!(contradicts(&stream(
        &[delta(0, json!({"text": "a"}))],
        "end_turn"
    )));
    assert!(contradicts(&stream(&[close(0)], "end_turn")));
    assert!(contradicts(&stream(
        &[text(), text(), close(0)],
        "end_turn"
    )));
    assert!(contradicts(&stream(&[text()], "end_turn")));
    // Two streams in one, content after the reason, two reasons, and no reason.
    assert!(contradicts(&stream(
        &[open(0, tool()), start(), close(0)],
        "tool_use"
    )));
    assert!(contradicts(&[
        start(),
        reason("end_turn"),
        text(),
        close(0),
        stop()
    ]));
    assert!(contradicts(&[
        start(),
        reason("end_turn"),
        reason("max_tokens"),
        stop()
    ]));
    assert!(contradicts(&[start(), stop()]));
    assert!(contradicts(&[start(), reason("end_turn")]));
}

#[test]
fn truncated_call_is_an_error_unless_max_tokens() {
    let cut = [open(0, tool()), delta(0, input("{\"x\":\"Par")), close(0)];
    assert!(contradicts(&stream(&cut, "tool_use")));
    assert!(contradicts(&stream(&cut, "end_turn")));
    let answer = read(&stream(&cut, "max_tokens")).unwrap();
    assert_eq!(answer.calls[0].arguments, "{\"x\":\"Par");
    // A block that is not closed is cut as well.
    assert_eq!(
        read(&stream(&cut[..2], "max_tokens")).unwrap().finish,
        Stop::MaxTokens
    );
    assert!(contradicts(&stream(&[], "tool_use")));
    let mut no_object = tool();
    no_object["input"] = json!("/srv");
    assert!(contradicts(&stream(
        &[open(0, no_object), close(0)],
        "tool_use"
    )));
}

#[test]
fn errors_have_many_forms() {
    for error in [
        json!({"type": "error", "error": {"message": "m"}}),
        json!({"error": "m"}),
        json!({"type": "error", "message": "m"}),
    ] {
        assert_eq!(
            read(&[start(), error.clone()]),
            Err(ReadError::Reported(error.to_string()))
        );
        assert_eq!(
            collect(&error.to_string()),
            Err(ReadError::Reported(error.to_string()))
        );
    }
    let failed = json!({"success": false, "code": 500, "msg": "m"}).to_string();
    assert_eq!(collect(&failed), Err(ReadError::Reported(failed.clone())));
}

#[test]
fn events_of_the_server_s_own_are_ignored() {
    let own = json!({"hook_results": {"before_request_hooks": []}});
    let text = [
        own.clone(),
        open(0, json!({"type": "text", "text": "a"})),
        close(0),
    ];
    let events = [vec![own], stream(&text, "end_turn")].concat();
    assert_eq!(read(&events).unwrap().text, "a");
}

#[test]
fn events_without_their_content_are_malformed() {
    for event in [
        json!([]),
        json!({"index": 0}),
        json!({"delta": {"text": "a"}}),
        json!({"type": "content_block_start", "index": 0}),
        json!({"type": "content_block_delta", "index": 0}),
        json!({"type": "content_block_delta", "index": 0, "delta": 5}),
        delta(0, json!({"type": "text_delta"})),
        delta(0, json!({"type": "text_delta", "text": 5})),
        json!({"type": "message_delta"}),
    ] {
        let read = read(&[start(), event.clone()]);
        assert!(
            matches!(read, Err(ReadError::Malformed(_))),
            "{event}: {read:?}"
        );
    }
    let read = read(&[start(), open(4096, json!({"type": "text"}))]);
    assert_eq!(read, Err(ReadError::Index(4096)));
    let unfinished = json!({"type": "message", "content": []}).to_string();
    assert_eq!(collect(&unfinished), Err(ReadError::Truncated));
    for body in ["null", "{}", r#"{"type":"completion","content":[]}"#] {
        assert!(
            matches!(collect(body), Err(ReadError::Malformed(_))),
            "{body}"
        );
    }
}

/// One step of a model's output.
#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Thinking(String),
    /// A call with the pieces of its input.
    Call(String, [String; 2]),
}

fn step() -> impl Strategy<Value = Step> {
    let words = "[a-z\u{e9}\u{2028}\"\\\\\r\n{}: ]{0,8}";
    let input = (words, any::<prop::sample::Index>()).prop_map(|(word, at)| {
        let text = json!({ "word": word }).to_string();
        let at = text.floor_char_boundary(at.index(text.len()));
        [text[..at].to_owned(), text[at..].to_owned()]
    });
    prop_oneof![
        words.prop_map(Step::Text),
        words.prop_map(Step::Thinking),
        ("[a-z_]{1,8}", input).prop_map(|(name, pieces)| Step::Call(name, pieces)),
    ]
}

proptest! {
    /// The lenient reader reads answers that the strict types accept to the same content.
    #[test]
    fn the_strict_and_the_lenient_reading_agree(steps in vec(step(), 0..12), is_cut in any::<bool>()) {
        let head = Head { id: "msg_1".into(), model: "m".into() };
        let (mut encoder, mut events) = (Encoder::new(head, Some(3)), Vec::new());
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Text(text) => encoder.text(text, &mut events),
                Step::Thinking(text) => encoder.reasoning(text, &mut events),
                Step::Call(name, pieces) => {
                    encoder.call(&format!("toolu_{number}"), name, &mut events);
                    pieces.iter().for_each(|piece| encoder.arguments(piece, &mut events));
                }
            }
        }
        let called = steps.iter().any(|step| matches!(step, Step::Call(..)));
        let natural = if called { StopReason::ToolUse } else { StopReason::EndTurn };
        let reason = if is_cut { StopReason::MaxTokens } else { natural };
        encoder.finish(reason, None, Some(Usage::new(3, 4)), &mut events);
        let strict = fold(&events).unwrap();
        let mut collector = Collector::default();
        for event in &events {
            collector.event(&event.data()).unwrap();
        }
        let streamed = collector.finish().unwrap();
        let strict = serde_json::to_value(&strict).unwrap();
        let plain = collect(&strict.to_string()).unwrap();
        prop_assert_eq!((&streamed.text, &streamed.reasoning, &streamed.finish, streamed.tokens),
            (&plain.text, &plain.reasoning, &plain.finish, plain.tokens));
        let join = |kind: &str| strict["content"].as_array().unwrap().iter()
            .filter_map(|block| block[kind].as_str()).collect::<String>();
        prop_assert_eq!((streamed.text, streamed.reasoning), (join("text"), join("thinking")));
        let calls: Vec<_> = strict["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use").collect();
        prop_assert_eq!(calls.len(), streamed.calls.len());
        for (strict, lenient) in calls.iter().zip(&streamed.calls) {
            prop_assert_eq!(&strict["id"], &lenient.id);
            prop_assert_eq!(&strict["name"], &lenient.name);
            let input: Value = serde_json::from_str(&lenient.arguments).unwrap();
            prop_assert_eq!(&strict["input"], &input);
        }
    }
}
