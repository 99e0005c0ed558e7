//! Laws that hold for any input.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_messages::{
    Block, BlockDelta, Delta, Encoder, Event, Grammar, Head, Message, Request, StopReason, Usage,
};
use wire::{ApiError, Object, Shape};

use crate::{events, fold, text};

/// Something that a model does.
#[derive(Clone, Debug)]
enum Act {
    Text(String),
    Reasoning(String),
    Signature(String),
    Refusal(String),
    Call(String),
    Arguments(String),
    Ping,
}

fn act() -> impl Strategy<Value = Act> {
    let words = "[a-z\u{e9}\u{2028}\"\\\\\r\n{}: ]{0,8}";
    let arguments = prop_oneof![
        words.prop_map(String::from),
        Just("{\"a\":1}".to_owned()),
        Just("{\"a\":".to_owned()),
        Just("[2]}".to_owned()),
    ];
    prop_oneof![
        words.prop_map(Act::Text),
        words.prop_map(Act::Reasoning),
        "[a-z=]{0,4}".prop_map(Act::Signature),
        words.prop_map(Act::Refusal),
        "[a-z_]{1,8}".prop_map(Act::Call),
        arguments.prop_map(Act::Arguments),
        Just(Act::Ping),
    ]
}

fn perform(acts: &[Act], encoder: &mut Encoder, out: &mut Vec<Event>) {
    for act in acts {
        match act {
            Act::Text(text) => encoder.text(text, out),
            Act::Reasoning(text) => encoder.reasoning(text, out),
            Act::Signature(text) => encoder.signature(text, out),
            Act::Refusal(text) => encoder.refusal(text, out),
            Act::Call(name) => encoder.call("toolu_1", name, out),
            Act::Arguments(text) => encoder.arguments(text, out),
            Act::Ping => encoder.ping(out),
        }
    }
}

fn encoder() -> Encoder {
    Encoder::new(Head { id: "msg_1".into(), model: "m".into() }, Some(3))
}

/// A block as the acts make it, by other means than the encoder's.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Text(String),
    Refusal(String),
    Thoughts(String, Option<String>),
    Call(String, String),
}

/// What the acts say in sum: what belongs together is what comes together.
fn sum(acts: &[Act]) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    for act in acts {
        match (act, told.last_mut()) {
            (Act::Ping, _) => {}
            (Act::Arguments(text), Some(Told::Call(_, all))) => all.push_str(text),
            (Act::Arguments(_), _) => {}
            (Act::Call(name), _) => told.push(Told::Call(name.clone(), String::new())),
            (Act::Text(text) | Act::Reasoning(text) | Act::Signature(text) | Act::Refusal(text), _)
                if text.is_empty() => {}
            (Act::Text(text), Some(Told::Text(all))) | (Act::Refusal(text), Some(Told::Refusal(all))) => {
                all.push_str(text);
            }
            (Act::Reasoning(text), Some(Told::Thoughts(all, None))) => all.push_str(text),
            (Act::Signature(text), Some(Told::Thoughts(_, seal @ None))) => *seal = Some(text.clone()),
            (Act::Text(text), _) => told.push(Told::Text(text.clone())),
            (Act::Refusal(text), _) => told.push(Told::Refusal(text.clone())),
            (Act::Reasoning(text), _) => told.push(Told::Thoughts(text.clone(), None)),
            (Act::Signature(text), _) => told.push(Told::Thoughts(String::new(), Some(text.clone()))),
        }
    }
    told
}

/// The blocks of a message that says what was told; `cut` when the model was cut off in the last.
fn blocks(told: &[Told], cut: bool) -> Value {
    let block = |told: &Told| match told {
        Told::Text(text) | Told::Refusal(text) => json!({"type": "text", "text": text}),
        Told::Thoughts(text, seal) => {
            json!({"type": "thinking", "thinking": text, "signature": seal.clone().unwrap_or_default()})
        }
        Told::Call(name, text) => json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input(text)}),
    };
    let mut blocks: Vec<Value> = told.iter().map(block).collect();
    if let (true, Some(Told::Call(_, text)), Some(last)) = (cut, told.last(), blocks.last_mut())
        && !text.trim().is_empty()
        && serde_json::from_str::<Object>(text).is_err()
    {
        last["input"] = json!({ "_raw": text });
    }
    blocks.into()
}

/// The object that the text is or begins with, and `_raw` when it does neither.
fn input(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    match serde_json::Deserializer::from_str(text).into_iter::<Object>().next() {
        Some(Ok(input)) => input.into(),
        _ => json!({ "_raw": text }),
    }
}

/// The content of a message, of inputs with `_raw` that alone: what else was told of them is free.
fn content(message: &Message) -> Value {
    let mut content = serde_json::to_value(&message.content).unwrap();
    for block in content.as_array_mut().unwrap() {
        if let Some(raw) = block["input"].get("_raw").cloned() {
            block["input"] = json!({ "_raw": raw });
        }
    }
    content
}

proptest! {
    #[test]
    fn whatever_a_model_does_is_a_grammatical_stream_that_folds_to_it(acts in vec(act(), 0..12)) {
        let (mut encoder, mut out) = (encoder(), Vec::new());
        perform(&acts, &mut encoder, &mut out);
        encoder.finish(StopReason::EndTurn, Some("END".to_owned()), Some(Usage::new(5, 4)), &mut out);
        encoder.text("after the end", &mut out);
        encoder.call("toolu_2", "late", &mut out);
        encoder.ping(&mut out);
        encoder.fail(&ApiError::server_error(), &mut out);

        prop_assert_eq!(&events(&text(&out)), &out);
        let message = fold(&out).unwrap();
        let told = sum(&acts);
        let refused = told.iter().any(|block| matches!(block, Told::Refusal(_)));
        // A refusal cuts what the model was at.
        prop_assert_eq!(content(&message), blocks(&told, refused));
        let called = told.iter().any(|block| matches!(block, Told::Call(..)));
        let reason = match (refused, called) {
            (true, _) => StopReason::Refusal,
            (_, true) => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        prop_assert_eq!((message.stop_reason, message.stop_sequence), (Some(reason), None));
        prop_assert_eq!(message.usage, Usage::new(5, 4));
    }

    #[test]
    fn a_cap_may_cut_a_call_anywhere(acts in vec(act(), 0..8), arguments in "[\\[\\]{}:,a\"1 ]{0,8}") {
        let acts = [acts, vec![Act::Call("f".to_owned()), Act::Arguments(arguments)]].concat();
        let (mut encoder, mut out) = (encoder(), Vec::new());
        perform(&acts, &mut encoder, &mut out);
        encoder.finish(StopReason::MaxTokens, None, None, &mut out);
        let message = fold(&out).unwrap();
        prop_assert_eq!(content(&message), blocks(&sum(&acts), true));
        prop_assert_eq!((message.stop_reason, message.usage), (Some(StopReason::MaxTokens), Usage::new(3, 0)));
    }

    #[test]
    fn a_failure_ends_the_stream_and_is_never_a_reply(acts in vec(act(), 0..8)) {
        let (mut encoder, mut out) = (encoder(), Vec::new());
        perform(&acts, &mut encoder, &mut out);
        encoder.fail(&ApiError::server_error(), &mut out);
        encoder.finish(StopReason::EndTurn, None, None, &mut out);
        prop_assert_eq!(out.iter().filter(|event| event.is_terminal()).count(), 1);
        prop_assert!(fold(&out).is_err());
    }

    #[test]
    fn a_stream_cut_anywhere_is_never_a_reply(acts in vec(act(), 0..8), at in any::<prop::sample::Index>()) {
        let (mut encoder, mut out) = (encoder(), Vec::new());
        perform(&acts, &mut encoder, &mut out);
        encoder.finish(StopReason::StopSequence, Some("END".to_owned()), None, &mut out);
        let cut = at.index(out.len());
        prop_assert!(fold(&out[..cut]).is_err());
        let mut grammar = Grammar::new();
        prop_assert!(out[..cut].iter().all(|event| grammar.push(event).is_ok()));
        prop_assert!(grammar.finish().is_err());
    }

    #[test]
    fn the_diagnosis_agrees_with_the_parser(document in strategies::changed(requests())) {
        let parses = serde_json::from_str::<Request>(&document.to_string());
        let diagnosis = Shape::of::<Request>().diagnose(&document);
        prop_assert_eq!(parses.is_ok(), diagnosis.is_empty(), "{:?} {} {}", parses.err(), diagnosis, document);
    }

    #[test]
    fn what_is_read_is_written_and_read_again_the_same(document in strategies::changed(requests())) {
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

/// The pieces of input that are told for pieces of arguments.
fn pieces(arguments: &[&str]) -> Vec<String> {
    let (mut encoder, mut out) = (encoder(), Vec::new());
    encoder.call("toolu_1", "f", &mut out);
    let mut told = Vec::new();
    for piece in arguments {
        encoder.arguments(piece, &mut out);
        told.extend(out.drain(..).filter_map(piece_of));
    }
    encoder.finish(StopReason::EndTurn, None, None, &mut out);
    told.extend(out.drain(..).filter_map(piece_of));
    told
}

fn piece_of(event: Event) -> Option<String> {
    match event {
        Event::BlockDelta(BlockDelta { delta: Delta::InputJson(delta), .. }) => Some(delta.partial_json),
        _ => None,
    }
}

#[test]
fn arguments_are_told_as_they_come() {
    let (mut encoder, mut out) = (encoder(), Vec::new());
    encoder.call("toolu_1", "f", &mut out);
    for piece in ["{\"ci", "ty\":", " \"Os", "lo\"}"] {
        out.clear();
        encoder.arguments(piece, &mut out);
        assert_eq!(out.drain(..).map(piece_of).collect::<Vec<_>>(), [Some(piece.to_owned())]);
    }
    assert_eq!(pieces(&["", "  ", "\n"]), [""; 0]);
    assert_eq!(pieces(&[" ", "", "{", "}"]), [" {", "}"]);
}

#[test]
fn arguments_that_are_no_object_become_one() {
    assert_eq!(pieces(&["[1", "]"]), [r#"{"_raw":"[1]"}"#]);
    assert_eq!(pieces(&["{\"a\":1, b", "c\""]), [r#"{"a":1, "#, r#""_raw":"{\"a\":1, bc\""}"#]);
    assert_eq!(pieces(&["{\"a\":\"x"]), [r#"{"a":"x"#, r#"","_raw":"{\"a\":\"x"}"#]);
    assert_eq!(pieces(&["{}", "}", " {}"]), ["{}"], "what follows a whole object is left out");
}

/// Half a character and a number beyond all bounds are JSON by its grammar, and no value: the stream is whole.
#[test]
fn arguments_that_are_no_value_are_kept_as_they_were_written() {
    for written in [r#"{"a":"\ud83d"}"#, r#"{"a":1e400}"#] {
        for at in 0..=written.len() {
            let (mut encoder, mut out) = (encoder(), Vec::new());
            encoder.call("toolu_1", "f", &mut out);
            encoder.arguments(&written[..at], &mut out);
            encoder.arguments(&written[at..], &mut out);
            encoder.finish(StopReason::ToolUse, None, None, &mut out);
            assert_eq!(content(&fold(&out).unwrap())[0]["input"], json!({ "_raw": written }), "cut at {at}");
        }
    }
}

#[test]
fn a_stop_text_is_told_when_it_is_the_reason() {
    let (mut encoder, mut out) = (encoder(), Vec::new());
    encoder.finish(StopReason::StopSequence, Some("END".to_owned()), None, &mut out);
    assert_eq!(fold(&out).unwrap().stop_sequence.as_deref(), Some("END"));
}

#[test]
fn thoughts_without_a_seal_are_told_with_an_empty_one() {
    let (mut encoder, mut out) = (encoder(), Vec::new());
    encoder.reasoning("Hm.", &mut out);
    encoder.text("Ha.", &mut out);
    let seals = out.iter().filter(|event| event.data().contains(r#"{"type":"signature_delta","signature":""}"#));
    assert_eq!(seals.count(), 1);
    encoder.finish(StopReason::EndTurn, None, None, &mut out);
    assert!(matches!(&fold(&out).unwrap().content[0], Block::Thinking(block) if block.signature.is_empty()));
}

fn requests() -> Vec<Value> {
    fixtures("-request-")
}

fn replies() -> Vec<Value> {
    fixtures("messages-response-")
}

fn fixtures(kind: &str) -> Vec<Value> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wanted = files.filter(|path| path.to_string_lossy().contains(kind));
    wanted.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
}
