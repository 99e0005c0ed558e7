//! Tests of image requests and of the events of image answers.

use engine::{
    Background, ImageEdit, ImageEvent, ImageFormat, ImageRequest, ImageTraits, ImageUsage, Pixels,
    Quality, Size,
};
use images::{Event, Generation, Grammar, Operation};
use sluicegate_translate::inbound::{Pictures, image_request};
use wire::ApiError;

use crate::NOW;

fn request(body: &str) -> ImageRequest {
    let generation = Generation::read(body.as_bytes())
        .unwrap()
        .validate(&images::Rules::default())
        .unwrap();
    image_request(&generation, "m", None)
}

/// The neutral form of a minimal request.
fn minimal() -> ImageRequest {
    ImageRequest {
        model: "m".to_owned(),
        prompt: "A boat".to_owned(),
        count: 1,
        size: Size::Exact(Pixels::new(1254, 1254)),
        quality: None,
        background: None,
        format: ImageFormat::Png,
        compression: None,
        previews: 0,
        seed: None,
        edit: None,
    }
}

#[test]
fn absent_and_auto_settings_are_left_to_the_engine() {
    assert_eq!(request(r#"{"prompt":"A boat"}"#), minimal());
    let auto = request(r#"{"prompt":"A boat","size":"auto","quality":"auto","background":"auto"}"#);
    assert_eq!(
        auto,
        ImageRequest {
            size: Size::Auto,
            ..minimal()
        }
    );
}

#[test]
fn every_field_is_carried() {
    let full = request(
        r#"{"prompt":"A boat","n":2,"size":"1024x1536","quality":"xhigh","background":"transparent",
            "output_format":"webp","output_compression":50,"stream":true,"partial_images":3,"seed":-7}"#,
    );
    let expected = ImageRequest {
        count: 2,
        size: Size::Exact(Pixels::new(1024, 1536)),
        quality: Some(Quality::XHigh),
        background: Some(Background::Transparent),
        format: ImageFormat::Webp,
        compression: Some(50),
        previews: 3,
        seed: Some(-7),
        ..minimal()
    };
    assert_eq!(full, expected);
    let plain = request(r#"{"prompt":"A boat","partial_images":3}"#);
    assert_eq!(plain.previews, 0, "previews need a stream");
    let edit = ImageEdit {
        references: vec![b"a".as_slice().into()],
        mask: None,
    };
    let generation = Generation::new("A boat".to_owned());
    assert_eq!(
        image_request(&generation, "m", Some(edit.clone())).edit,
        Some(edit)
    );
}

const TRAITS: ImageTraits = ImageTraits {
    size: Pixels::new(64, 32),
    quality: Quality::Low,
    background: Background::Opaque,
    format: ImageFormat::Jpeg,
};

fn finished(input: u64) -> ImageEvent {
    let usage = ImageUsage {
        input_text: input,
        input_image: 2 * input,
        output_image: 10,
    };
    ImageEvent::Finished {
        picture: b"last"[..].into(),
        usage,
    }
}

#[test]
fn engine_steps_become_a_grammatical_stream() {
    for operation in [Operation::Generation, Operation::Edit] {
        let mut pictures = Pictures::new(operation, &TRAITS, 2, 5);
        let mut grammar = Grammar::new(operation, Some(2));
        let mut ids = Vec::new();
        let steps = [
            ImageEvent::Preview(b"first"[..].into()),
            finished(3),
            finished(0),
        ];
        for step in steps {
            assert!(!pictures.is_complete());
            let event = pictures.event(&step, NOW).unwrap();
            grammar.push(&event).unwrap();
            if let Event::GenerationCompleted(last) | Event::EditCompleted(last) = event {
                assert_eq!(
                    (last.size.as_str(), last.b64_json.as_str(), last.created_at),
                    ("64x32", "bGFzdA==", NOW)
                );
                let usage = last.usage.unwrap();
                assert_eq!(usage.total_tokens, usage.input_tokens + usage.output_tokens);
                ids.push(last.generation_id.unwrap());
            }
        }
        assert!(pictures.is_complete());
        grammar.finish().unwrap();
        assert_ne!(ids[0], ids[1]);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "an error of the test alone")]
fn a_failure_is_reported_once_and_ends_the_stream() {
    let mut pictures = Pictures::new(Operation::Edit, &TRAITS, 1, 5);
    let cause = ApiError::new(wire::ErrorKind::Internal, "upstream_error", "a secret");
    let failure = pictures.fail(&cause).unwrap();
    assert!(
        failure.data().contains("server_error") && !failure.data().contains("secret"),
        "{}",
        failure.data()
    );
    assert_eq!(
        (pictures.fail(&cause), pictures.event(&finished(1), NOW)),
        (None, None)
    );
    assert!(!pictures.is_complete());
}
