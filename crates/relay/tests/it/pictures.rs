//! Relayed images.

use engine::EngineError;
use images::Operation;
use serde_json::{Value, json};
use sluicegate_relay::Images;
use strategies::PNG;

use crate::laws::{data, fixture};
use crate::laws::{refused, relayed};

/// Returns a reply with this number of images.
fn pictures(count: usize) -> Vec<u8> {
    let data = vec![json!({"b64_json": PNG}); count];
    let mut reply =
        json!({ "created": 1, "background": "opaque", "output_format": "png", "quality": "high" });
    (reply["size"], reply["data"]) = (json!("8x8"), json!(data));
    reply.to_string().into_bytes()
}

#[test]
fn a_reply_without_pictures_is_no_success() {
    sluicegate_relay::reply::<Images>(&pictures(1), "m").unwrap();
    let none = [
        json!({"data": []}),
        json!({}),
        json!({"data": [{"b64_json": ""}]}),
        json!({"data": [{"b64_json": PNG}, {"revised_prompt": "x"}]}),
        json!({"data": [{"b64_json": &PNG[..40]}]}),
    ];
    for reply in none {
        let ended = sluicegate_relay::reply::<Images>(reply.to_string().as_bytes(), "m");
        assert!(
            matches!(ended, Err(EngineError::Upstream(_))),
            "{reply}: {ended:?}"
        );
    }
}

/// A reply is relayed unchanged, whatever it lacks and whatever else it has.
#[test]
fn a_lean_reply_passes_and_becomes_a_lean_stream() {
    let lean = json!({"data": [{"b64_json": PNG, "revised_prompt": "A boat", "type": "image"}], "ours": 1});
    let body = lean.to_string();
    let (out, end) = sluicegate_relay::reply::<Images>(body.as_bytes(), "m").unwrap();
    assert_eq!((String::from_utf8(out).unwrap(), end.usage), (body, None));
    let body = serde_json::to_string_pretty(&lean).unwrap();
    let (out, _) = sluicegate_relay::reply_as_stream(body.as_bytes(), Operation::Edit, 1).unwrap();
    assert!(out.starts_with(b"event: image_edit.completed\ndata: {"));
    let event: Value = serde_json::from_str(&data(&out)[0]).unwrap();
    let expected =
        json!({"type": "image_edit.completed", "b64_json": PNG, "revised_prompt": "A boat"});
    assert_eq!(event, expected);
}

/// The members that all images share are in each event, and the usage is in the first.
#[test]
fn a_full_reply_becomes_a_full_stream() {
    let reply = fixture("images-response-two.json");
    let (out, end) = sluicegate_relay::reply_as_stream(&reply, Operation::Generation, 2).unwrap();
    assert_eq!(
        end.usage.map(|usage| (usage.input, usage.output)),
        Some((12, 544))
    );
    let events = data(&out);
    let events: Vec<_> = events
        .iter()
        .map(|data| images::Event::read(data).unwrap())
        .collect();
    let mut fold = images::Fold::new(Operation::Generation, Some(2));
    events
        .into_iter()
        .for_each(|event| fold.push(event).unwrap());
    let folded = serde_json::to_value(fold.finish().unwrap()).unwrap();
    assert_eq!(folded, serde_json::from_slice::<Value>(&reply).unwrap());
}

/// A stream may lack all but its images.
#[test]
fn a_lean_stream_passes() {
    let stream = format!(
        "data: {}\n\ndata: {}\n\n",
        json!({"type": "image_generation.partial_image", "b64_json": PNG}),
        json!({"type": "image_generation.completed", "b64_json": PNG}),
    );
    let protocol = Images::new(Operation::Generation, 1);
    let (out, ended) = relayed(protocol, "m", &[stream.as_bytes()]);
    ended.unwrap();
    assert_eq!(data(&out), data(stream.as_bytes()));
}

/// Padding stands behind the letters. The scanner removes it elsewhere, and has to fail then.
#[test]
fn padding_between_letters_fails_in_a_stream() {
    let padded = format!("{}={}", &PNG[..32], &PNG[32..]);
    let as_stream = |picture: &str| {
        let body = json!({"data": [{"b64_json": picture}]}).to_string();
        sluicegate_relay::reply_as_stream(body.as_bytes(), Operation::Generation, 1)
    };
    as_stream(PNG).unwrap();
    let error = as_stream(&padded).unwrap_err();
    assert!(error.to_string().contains("no picture"), "{error}");
}

/// Clients of a stream expect the bytes of an image.
#[test]
fn a_url_passes_in_a_reply_and_fails_in_a_stream() {
    let picture = json!({"url": "https://pictures.example/a.png", "b64_json": null});
    let body = json!({"data": [picture]}).to_string();
    let (out, _) = sluicegate_relay::reply::<Images>(body.as_bytes(), "m").unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), body);
    let mut event = picture;
    event["type"] = "image_generation.completed".into();
    for error in [
        sluicegate_relay::reply_as_stream(body.as_bytes(), Operation::Generation, 1).unwrap_err(),
        refused(Images::new(Operation::Generation, 1), &event),
    ] {
        assert!(error.to_string().contains("`url`"), "{error}");
    }
}

#[test]
fn a_reply_with_other_than_the_pictures_asked_for_is_no_stream() {
    sluicegate_relay::reply_as_stream(&pictures(2), Operation::Generation, 2).unwrap();
    for count in [1, 3] {
        let ended = sluicegate_relay::reply_as_stream(&pictures(2), Operation::Generation, count);
        assert!(matches!(ended, Err(EngineError::Upstream(_))), "{ended:?}");
    }
}
