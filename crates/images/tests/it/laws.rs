//! Property tests: laws that hold for any input.

use std::ops::ControlFlow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sluicegate_images::{
    Background, Edit, Encoder, Event, Form, Generation, Grammar, Operation, OutputFormat, Quality,
    Rules, Settled, Source, TokensDetails, Usage,
};
use wire::{ApiError, DataUrl, Shape};

use crate::{events, fold, text};

/// One step of a model's output.
#[derive(Clone, Debug)]
enum Step {
    Preview(Vec<u8>),
    Completed(Vec<u8>, u64),
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    let file = || vec(any::<u8>(), 0..40);
    prop_oneof![
        6 => file().prop_map(Step::Preview),
        4 => (file(), 0..u64::MAX / 16).prop_map(|(file, tokens)| Step::Completed(file, tokens)),
        1 => Just(Step::Fail),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![Just(Operation::Generation), Just(Operation::Edit)]
}

/// Emits the events of the steps, up to a failure.
fn encode(operation: Operation, steps: &[Step]) -> Vec<Event> {
    let settled = Settled {
        size: "16x16".into(),
        quality: Quality::Low,
        background: Background::Opaque,
        output_format: OutputFormat::Png,
    };
    let (mut encoder, mut out) = (Some(Encoder::new(operation, settled)), Vec::new());
    let _: ControlFlow<()> = steps.iter().try_for_each(|step| {
        let Some(open) = &mut encoder else {
            return ControlFlow::Break(());
        };
        out.push(match step {
            Step::Preview(file) => open.preview(file, 1),
            Step::Completed(file, tokens) => open.completed(file, "id".into(), usage(*tokens), 2),
            Step::Fail => encoder.take().unwrap().fail(&ApiError::server_error()),
        });
        ControlFlow::Continue(())
    });
    out
}

fn usage(tokens: u64) -> Usage {
    Usage::new(TokensDetails::new(0, 1), TokensDetails::new(tokens, 0))
}

/// Returns the completed files as base64, and the total of the tokens.
fn sum(steps: &[Step]) -> (Vec<String>, u64) {
    let (mut files, mut tokens) = (Vec::new(), 0);
    for step in steps {
        if let Step::Completed(file, more) = step {
            files.push(STANDARD.encode(file));
            tokens += more + 1;
        }
    }
    (files, tokens)
}

/// Generates a setting of a form, as text and as its JSON value.
fn settings() -> impl Strategy<Value = Map<String, Value>> {
    let words = || "[a-z0-9x\u{e9} ]{1,8}".prop_map(Value::from);
    let known =
        |words: &'static [&'static str]| proptest::sample::select(words).prop_map(Value::from);
    let word = (
        proptest::sample::select(vec![
            "model",
            "size",
            "quality",
            "background",
            "output_format",
            "user",
            "moderation",
        ]),
        prop_oneof![
            words(),
            known(&["low", "1024x1024", "auto", "png", "jpeg", "transparent"])
        ],
    );
    let integer = (
        proptest::sample::select(vec!["n", "output_compression", "partial_images", "seed"]),
        prop_oneof![
            any::<i64>().prop_map(Value::from),
            (-1_i64..12).prop_map(Value::from),
            Just(json!(1.5))
        ],
    );
    let boolean = (Just("stream"), any::<bool>().prop_map(Value::from));
    let setting = prop_oneof![word, integer, boolean].boxed();
    (words(), vec(setting, 0..8)).prop_map(|(prompt, settings)| {
        let settings = settings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        settings.chain([("prompt".to_owned(), prompt)]).collect()
    })
}

fn files() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let kinds: [&[u8]; 3] = [
        b"\x89PNG\r\n\x1a\n\0\0\0\r",
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01",
        b"RIFF\x04\0\0\0WEBPVP8 ",
    ];
    let file = (
        proptest::sample::select(kinds.to_vec()),
        vec(any::<u8>(), 0..30),
    );
    vec(file.prop_map(|(kind, rest)| [kind, &rest].concat()), 1..=16)
}

fn data_url(file: &[u8]) -> Value {
    let media_type = picture::Format::sniff(file).unwrap().media_type();
    json!({"image_url": format!("data:{media_type};base64,{}", STANDARD.encode(file))})
}

proptest! {
    #[test]
    fn encoder_output_is_grammatical(operation in operation(), steps in vec(step(), 0..12)) {
        let out = encode(operation, &steps);
        prop_assert_eq!(&events(&text(&out)), &out);
        let mut grammar = Grammar::new(operation, None);
        for event in &out {
            prop_assert_eq!(grammar.push(event), Ok(()));
            prop_assert_eq!(grammar.is_ended(), matches!(event, Event::Error(_)));
        }
    }

    #[test]
    fn previews_are_counted_from_0_for_each_picture(operation in operation(), steps in vec(step(), 0..12)) {
        let mut next = 0;
        for event in encode(operation, &steps) {
            match event {
                Event::GenerationPreview(preview) | Event::EditPreview(preview) => {
                    prop_assert_eq!(preview.partial_image_index, next);
                    next += 1;
                }
                _ => next = 0,
            }
        }
    }

    #[test]
    fn a_stream_folds_to_the_pictures_that_were_made(operation in operation(), steps in vec(step(), 1..12)) {
        let (files, tokens) = sum(&steps);
        let failed = steps.iter().any(|step| matches!(step, Step::Fail));
        let done = matches!(steps.last(), Some(Step::Completed(..))) && !failed;
        let out = encode(operation, &steps);
        let count = u32::try_from(files.len()).unwrap();
        for count in [None, Some(count)] {
            let folded = fold(operation, count, &out);
            prop_assert_eq!(folded.is_ok(), done);
            if let Ok(reply) = folded {
                prop_assert_eq!(reply.usage.unwrap().total_tokens, tokens);
                prop_assert_eq!(reply.data.into_iter().map(|image| image.b64_json).collect::<Vec<_>>(), files.clone());
            }
        }
        prop_assert!(fold(operation, Some(count + 1), &out).is_err());
    }

    #[test]
    fn form_is_equivalent_to_the_same_json_body(
        settings in settings(), files in files(), mask in any::<bool>()
    ) {
        let (mut form, mut body) = (Form::default(), settings.clone());
        for (name, value) in &settings {
            form.text(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        files.iter().for_each(|file| form.picture("image[]", file.clone().into()));
        body.insert("images".to_owned(), files.iter().map(|file| data_url(file)).collect());
        if mask {
            let file = b"\x89PNG\r\n\x1a\n\0\0\0\rmask";
            form.picture("mask", file[..].into());
            body.insert("mask".to_owned(), data_url(file));
        }
        let in_json = Edit::read(Value::Object(body).to_string().as_bytes());
        let in_form = form.finish();
        prop_assert_eq!(&in_form, &in_json);
        let judged = |edit: Edit| edit.validate(&Rules::default());
        prop_assert_eq!(in_form.and_then(judged), in_json.and_then(judged));
    }

    #[test]
    fn settings_of_any_text_are_read_or_refused(texts in btree_map("[a-z_]{1,12}|n|stream|prompt", ".{0,12}", 0..6)) {
        let mut form = Form::default();
        texts.iter().for_each(|(name, text)| form.text(name, text));
        form.picture("image", b"\x89PNG\r\n\x1a\n\0\0\0\r"[..].into());
        if let Ok(edit) = form.finish() {
            let written = serde_json::to_vec(&edit).unwrap();
            prop_assert_eq!(Edit::read(&written), Ok(edit));
        }
    }

    #[test]
    fn a_data_url_is_decoded_and_written_the_same(media_type in "[a-z/;+]{0,12}", file in vec(any::<u8>(), 1..100)) {
        let url = format!("data:{media_type};base64,{}", STANDARD.encode(&file));
        let source: Source = serde_json::from_str(&json!(url).to_string()).unwrap();
        prop_assert_eq!(&source, &Source::Inline { media_type, bytes: file.into() });
        prop_assert_eq!(serde_json::to_value(&source).unwrap(), json!(url));
    }

    #[test]
    fn a_text_is_a_source_and_the_same_text_again(
        text in prop_oneof![".{0,20}", "data:[a-z/]{0,5}(;base64)?,?[A-Za-z0-9+/=]{0,9}"]
    ) {
        let source = Source::from(text.as_str());
        let decodes = DataUrl::parse(&text).is_ok_and(|url| url.decode().is_ok());
        prop_assert_eq!(source.media_type().is_some(), decodes);
        prop_assert_eq!(serde_json::to_value(&source).unwrap(), json!(text));
    }

    #[test]
    fn the_diagnosis_agrees_with_the_parser(document in strategies::changed(requests())) {
        let text = document.to_string();
        let generation = serde_json::from_str::<Generation>(&text);
        let diagnosis = Shape::of::<Generation>().diagnose(&document);
        prop_assert_eq!(generation.is_ok(), diagnosis.is_empty(), "{:?} {} {}", generation.err(), diagnosis, text);
        let edit = serde_json::from_str::<Edit>(&text);
        let diagnosis = Shape::of::<Edit>().diagnose(&document);
        prop_assert_eq!(edit.is_ok(), diagnosis.is_empty(), "{:?} {} {}", edit.err(), diagnosis, text);
    }

    #[test]
    fn parsed_requests_survive_a_round_trip(document in strategies::changed(requests())) {
        if let Ok(request) = Edit::read(document.to_string().as_bytes()) {
            let written = serde_json::to_vec(&request).unwrap();
            prop_assert_eq!(Edit::read(&written).unwrap(), request);
        }
    }
}

fn requests() -> Vec<Value> {
    strategies::documents(
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures"),
        "-request",
    )
}
