//! Property tests: laws that hold for any input.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use sluicegate_chat::{Encoder, Event, FinishReason, Grammar, Head, Request, ToolCall, Usage};
use wire::{ApiError, Shape};

use crate::{events, fold, text};

/// One step of a model's output.
#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Reasoning(String),
    Refusal(String),
    Call(String),
    Arguments(String),
}

fn step() -> impl Strategy<Value = Step> {
    let words = "[a-z\u{e9}\u{2028}\"\\\\\r\n{}: ]{0,8}";
    prop_oneof![
        words.prop_map(Step::Text),
        words.prop_map(Step::Reasoning),
        words.prop_map(Step::Refusal),
        "[a-z_]{1,8}".prop_map(Step::Call),
        words.prop_map(Step::Arguments),
    ]
}

fn encode(steps: &[Step], encoder: &mut Encoder, out: &mut Vec<Event>) {
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::Text(text) => encoder.text(text, out),
            Step::Reasoning(text) => encoder.reasoning(text, out),
            Step::Refusal(text) => encoder.refusal(text, out),
            Step::Call(name) => encoder.call(&format!("call_{i}"), name, out),
            Step::Arguments(text) => encoder.arguments(text, out),
        }
    }
}

fn encoder() -> Encoder {
    Encoder::new(
        Head {
            id: "chatcmpl-1".into(),
            created: 1_789_000_000,
            model: "m".into(),
        },
        true,
    )
}

/// Merges the steps: text, reasoning, refusal, and calls with their arguments.
fn sum(steps: &[Step]) -> (String, String, String, Vec<(String, String)>) {
    let (mut text_sum, mut reasoning, mut refusal, mut calls) =
        (String::new(), String::new(), String::new(), Vec::new());
    for step in steps {
        match step {
            Step::Text(text) => text_sum.push_str(text),
            Step::Reasoning(text) => reasoning.push_str(text),
            Step::Refusal(text) => refusal.push_str(text),
            Step::Call(name) => calls.push((name.clone(), String::new())),
            Step::Arguments(text) => {
                if let Some((_, arguments)) = calls.last_mut() {
                    arguments.push_str(text);
                }
            }
        }
    }
    (text_sum, reasoning, refusal, calls)
}

proptest! {
    #[test]
    fn encoder_output_is_grammatical_and_folds_to_its_input(steps in vec(step(), 0..12)) {
        let (mut encoder, mut out) = (encoder(), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(FinishReason::Stop, Some(Usage::new(3, 4)), &mut out);
        encoder.text("after the end", &mut out);
        encoder.fail(&ApiError::server_error(), &mut out);

        prop_assert_eq!(&events(&text(&out)), &out);
        let reply = fold(&out).unwrap();
        let message = &reply.choices[0].message;
        let calls = message.tool_calls.iter().map(|call| match call {
            ToolCall::Function(call) => (call.function.name.clone(), call.function.arguments.clone()),
            other => panic!("{other:?}"),
        });
        let got = (
            message.content.clone().unwrap_or_default(),
            message.reasoning_content.clone().unwrap_or_default(),
            message.refusal.clone().unwrap_or_default(),
            calls.collect::<Vec<_>>(),
        );
        prop_assert_eq!(got, sum(&steps));
        prop_assert_eq!(reply.usage, Some(Usage::new(3, 4)));
    }

    #[test]
    fn a_failure_ends_the_stream_and_is_never_a_reply(steps in vec(step(), 0..8)) {
        let (mut encoder, mut out) = (encoder(), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.fail(&ApiError::server_error(), &mut out);
        encoder.finish(FinishReason::Stop, None, &mut out);
        prop_assert_eq!(out.iter().filter(|event| event.is_terminal()).count(), 1);
        prop_assert!(fold(&out).is_err());
    }

    #[test]
    fn a_stream_cut_anywhere_is_never_a_reply(steps in vec(step(), 0..8), at in any::<prop::sample::Index>()) {
        let (mut encoder, mut out) = (encoder(), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(FinishReason::Length, None, &mut out);
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
}

fn requests() -> Vec<Value> {
    strategies::documents(
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures"),
        "-request-",
    )
}
