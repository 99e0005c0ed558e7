//! Property tests: laws that hold for any input.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_messages::{
    Block, BlockDelta, Delta, Encoder, Event, Grammar, Head, Message, Request, StopReason, Usage,
};
use wire::{ApiError, Object, Shape};

use crate::{events, fold, text};

/// One step of a model's output.
#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Reasoning(String),
    Signature(String),
    Refusal(String),
    /// A call, and its complete arguments.
    Call(String, String),
    /// More arguments.
    Arguments(String),
    Ping,
}

fn step() -> impl Strategy<Value = Step> {
    let words = "[a-z\u{e9}\u{2028}\"\\\\\r\n{}: ]{0,8}";
    let arguments = prop_oneof![
        Just(""),
        Just("  "),
        Just("{\"a\": 1}"),
        Just("\n{\"a\":[{}]}"),
        Just("[2]"),
        Just("\"x\""),
    ];
    prop_oneof![
        words.prop_map(Step::Text),
        words.prop_map(Step::Reasoning),
        "[a-z=]{0,4}".prop_map(Step::Signature),
        words.prop_map(Step::Refusal),
        ("[a-z_]{1,8}", arguments).prop_map(|(name, text)| Step::Call(name, text.to_owned())),
        Just(Step::Ping),
    ]
}

fn encode(steps: &[Step], encoder: &mut Encoder, out: &mut Vec<Event>) {
    for step in steps {
        match step {
            Step::Text(text) => encoder.text(text, out),
            Step::Reasoning(text) => encoder.reasoning(text, out),
            Step::Signature(text) => encoder.signature(text, out),
            Step::Refusal(text) => encoder.refusal(text, out),
            Step::Call(name, arguments) => {
                encoder.call("toolu_1", name, out);
                let (one, other) = arguments.split_at(arguments.len() / 2);
                encoder.arguments(one, out);
                encoder.arguments(other, out);
            }
            Step::Arguments(text) => encoder.arguments(text, out),
            Step::Ping => encoder.ping(out),
        }
    }
}

fn encoder() -> Encoder {
    Encoder::new(
        Head {
            id: "msg_1".into(),
            model: "m".into(),
        },
        Some(3),
    )
}

/// A block, accumulated independently of the encoder.
#[derive(Clone, Debug, PartialEq)]
enum ExpectedBlock {
    Text(String),
    Refusal(String),
    Thinking(String, Option<String>),
    Call(String, String),
}

/// Merges consecutive steps of the same kind into blocks.
fn sum(steps: &[Step]) -> Vec<ExpectedBlock> {
    let mut blocks: Vec<ExpectedBlock> = Vec::new();
    for step in steps {
        match (step, blocks.last_mut()) {
            (Step::Ping, _) => {}
            (Step::Arguments(text), Some(ExpectedBlock::Call(_, all))) => all.push_str(text),
            (Step::Arguments(_), _) => {}
            (Step::Call(name, arguments), _) => {
                blocks.push(ExpectedBlock::Call(name.clone(), arguments.clone()));
            }
            (
                Step::Text(text)
                | Step::Reasoning(text)
                | Step::Signature(text)
                | Step::Refusal(text),
                _,
            ) if text.is_empty() => {}
            (Step::Text(text), Some(ExpectedBlock::Text(all)))
            | (Step::Refusal(text), Some(ExpectedBlock::Refusal(all))) => {
                all.push_str(text);
            }
            (Step::Reasoning(text), Some(ExpectedBlock::Thinking(all, None))) => all.push_str(text),
            (Step::Signature(text), Some(ExpectedBlock::Thinking(_, signature @ None))) => {
                *signature = Some(text.clone());
            }
            (Step::Text(text), _) => blocks.push(ExpectedBlock::Text(text.clone())),
            (Step::Refusal(text), _) => blocks.push(ExpectedBlock::Refusal(text.clone())),
            (Step::Reasoning(text), _) => blocks.push(ExpectedBlock::Thinking(text.clone(), None)),
            (Step::Signature(text), _) => {
                blocks.push(ExpectedBlock::Thinking(String::new(), Some(text.clone())));
            }
        }
    }
    blocks
}

/// Returns the content of a message with these blocks.
fn blocks(expected: &[ExpectedBlock]) -> Value {
    let json = |block: &ExpectedBlock| match block {
        ExpectedBlock::Text(text) | ExpectedBlock::Refusal(text) => {
            json!({"type": "text", "text": text})
        }
        ExpectedBlock::Thinking(text, signature) => {
            json!({"type": "thinking", "thinking": text, "signature": signature.clone().unwrap_or_default()})
        }
        ExpectedBlock::Call(name, text) => {
            json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input(text)})
        }
    };
    expected.iter().map(json).collect()
}

/// Returns the object that the text is, or `_raw`.
fn input(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str::<Object>(text).map_or_else(|_| json!({ "_raw": text }), Value::from)
}

/// Returns the content of a message, without the members that have the same value in every answer.
fn content(message: &Message) -> Value {
    let mut content = serde_json::to_value(&message.content).unwrap();
    for block in content.as_array_mut().unwrap() {
        let block = block.as_object_mut().unwrap();
        block.remove("citations");
        block.remove("caller");
    }
    content
}

/// Returns a usage with nothing but its counts.
fn counts(mut usage: Usage) -> Usage {
    usage.extra.clear();
    usage
}

proptest! {
    #[test]
    fn encoder_output_is_grammatical_and_folds_to_its_input(steps in vec(step(), 0..12)) {
        let (mut encoder, mut out) = (encoder(), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(StopReason::EndTurn, Some("END".to_owned()), Some(Usage::new(5, 4)), &mut out);
        encoder.text("after the end", &mut out);
        encoder.call("toolu_2", "late", &mut out);
        encoder.ping(&mut out);
        encoder.fail(&ApiError::server_error(), &mut out);

        prop_assert_eq!(&events(&text(&out)), &out);
        let message = fold(&out).unwrap();
        let expected = sum(&steps);
        let refused = expected.iter().any(|block| matches!(block, ExpectedBlock::Refusal(_)));
        prop_assert_eq!(content(&message), blocks(&expected));
        let called = expected.iter().any(|block| matches!(block, ExpectedBlock::Call(..)));
        let reason = match (refused, called) {
            (true, _) => StopReason::Refusal,
            (_, true) => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        prop_assert_eq!((message.stop_reason, message.stop_sequence), (Some(reason), None));
        prop_assert_eq!(counts(message.usage), Usage::new(5, 4));
    }

    #[test]
    fn a_cap_may_cut_a_call_anywhere(steps in vec(step(), 0..8), arguments in "[\\[\\]{}:,a\"1 ]{0,8}") {
        let steps = [steps, vec![Step::Call("f".to_owned(), String::new()), Step::Arguments(arguments)]].concat();
        let (mut encoder, mut out) = (encoder(), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(StopReason::MaxTokens, None, None, &mut out);
        let message = fold(&out).unwrap();
        prop_assert_eq!(content(&message), blocks(&sum(&steps)));
        prop_assert_eq!((message.stop_reason, counts(message.usage)), (Some(StopReason::MaxTokens), Usage::new(3, 0)));
    }

    #[test]
    fn a_failure_ends_the_stream_and_is_never_a_reply(steps in vec(step(), 0..8)) {
        let (mut encoder, mut out) = (encoder(), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.fail(&ApiError::server_error(), &mut out);
        encoder.finish(StopReason::EndTurn, None, None, &mut out);
        prop_assert_eq!(out.iter().filter(|event| event.is_terminal()).count(), 1);
        prop_assert!(fold(&out).is_err());
    }

    #[test]
    fn a_stream_cut_anywhere_is_never_a_reply(steps in vec(step(), 0..8), at in any::<prop::sample::Index>()) {
        let (mut encoder, mut out) = (encoder(), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(StopReason::StopSequence, Some("END".to_owned()), None, &mut out);
        let end = at.index(out.len());
        prop_assert!(fold(&out[..end]).is_err());
        let mut grammar = Grammar::default();
        prop_assert!(out[..end].iter().all(|event| grammar.push(event).is_ok()));
        prop_assert!(grammar.finish().is_err());
    }

    #[test]
    fn the_diagnosis_agrees_with_the_parser(document in strategies::changed(requests())) {
        let parses = serde_json::from_str::<Request>(&document.to_string());
        let diagnosis = Shape::of::<Request>().diagnose(&document);
        prop_assert_eq!(parses.is_ok(), diagnosis.is_empty(), "{:?} {} {}", parses.err(), diagnosis, document);
    }

    #[test]
    fn parsed_requests_survive_a_round_trip(document in strategies::changed(requests())) {
        if let Ok(request) = Request::read(document.to_string().as_bytes()) {
            let written = serde_json::to_vec(&request).unwrap();
            prop_assert_eq!(Request::read(&written).unwrap(), request);
        }
    }

    #[test]
    fn a_reply_is_written_as_it_was_read(document in strategies::changed(replies())) {
        if let Ok(reply) = serde_json::from_value::<Message>(document) {
            let written = serde_json::to_string(&reply).unwrap();
            prop_assert_eq!(serde_json::from_str::<Message>(&written).unwrap(), reply);
        }
    }
}

/// Returns the fragments of input that are emitted for fragments of arguments.
fn pieces(arguments: &[&str]) -> Vec<String> {
    let (mut encoder, mut out) = (encoder(), Vec::new());
    encoder.call("toolu_1", "f", &mut out);
    let mut emitted = Vec::new();
    for piece in arguments {
        encoder.arguments(piece, &mut out);
        emitted.extend(out.drain(..).filter_map(piece_of));
    }
    encoder.finish(StopReason::EndTurn, None, None, &mut out);
    emitted.extend(out.drain(..).filter_map(piece_of));
    emitted
}

fn piece_of(event: Event) -> Option<String> {
    match event {
        Event::BlockDelta(BlockDelta {
            delta: Delta::InputJson(delta),
            ..
        }) => Some(delta.partial_json),
        _ => None,
    }
}

#[test]
fn arguments_are_emitted_as_they_arrive() {
    let (mut encoder, mut out) = (encoder(), Vec::new());
    encoder.call("toolu_1", "f", &mut out);
    for piece in ["{\"ci", "ty\":", " \"Os", "lo\"}"] {
        out.clear();
        encoder.arguments(piece, &mut out);
        assert_eq!(
            out.drain(..).map(piece_of).collect::<Vec<_>>(),
            [Some(piece.to_owned())]
        );
    }
    assert_eq!(pieces(&["", "  ", "\n"]), [""; 0]);
    assert_eq!(pieces(&[" ", "", "{", "}"]), [" {", "}"]);
}

#[test]
fn arguments_that_are_no_object_become_one() {
    assert_eq!(pieces(&["[1", "]"]), [r#"{"_raw":"[1]"}"#]);
    assert_eq!(pieces(&["\"Os", "lo\""]), [r#"{"_raw":"\"Oslo\""}"#]);
    // A line separator is no white space of JSON.
    assert_eq!(pieces(&["\u{2028}{", "}"]), ["{\"_raw\":\"\u{2028}{}\"}"]);
}

/// Nothing is added to the text of the model, even where it is no JSON.
#[test]
fn arguments_are_never_completed() {
    assert_eq!(pieces(&["{\"a\":\"x"]), [r#"{"a":"x"#]);
    assert_eq!(pieces(&["{\"a\":1, b", "c\""]), [r#"{"a":1, b"#, "c\""]);
}

/// A lone surrogate and a number out of range are JSON by its grammar, but have no value: the
/// stream is complete.
#[test]
fn arguments_that_are_no_value_are_kept_as_they_were_written() {
    for written in [r#"{"a":"\ud83d"}"#, r#"{"a":1e400}"#] {
        for at in 0..=written.len() {
            let (mut encoder, mut out) = (encoder(), Vec::new());
            encoder.call("toolu_1", "f", &mut out);
            encoder.arguments(&written[..at], &mut out);
            encoder.arguments(&written[at..], &mut out);
            encoder.finish(StopReason::ToolUse, None, None, &mut out);
            assert_eq!(
                content(&fold(&out).unwrap())[0]["input"],
                json!({ "_raw": written }),
                "split at {at}"
            );
        }
    }
}

#[test]
fn a_stop_sequence_is_reported_when_it_is_the_reason() {
    let (mut encoder, mut out) = (encoder(), Vec::new());
    encoder.finish(
        StopReason::StopSequence,
        Some("END".to_owned()),
        None,
        &mut out,
    );
    assert_eq!(fold(&out).unwrap().stop_sequence.as_deref(), Some("END"));
}

#[test]
fn reasoning_without_a_signature_is_written_with_an_empty_one() {
    let (mut encoder, mut out) = (encoder(), Vec::new());
    encoder.reasoning("Hm.", &mut out);
    encoder.text("Ha.", &mut out);
    let signatures = out.iter().filter(|event| {
        event
            .data()
            .contains(r#"{"type":"signature_delta","signature":""}"#)
    });
    assert_eq!(signatures.count(), 1);
    encoder.finish(StopReason::EndTurn, None, None, &mut out);
    assert!(
        matches!(&fold(&out).unwrap().content[0], Block::Thinking(block) if block.signature.is_empty())
    );
}

fn requests() -> Vec<Value> {
    strategies::documents(FIXTURES, "-request-")
}

fn replies() -> Vec<Value> {
    strategies::documents(FIXTURES, "messages-response-")
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures");
