//! Image generation: the requested content is drawn, streamed and not:
//! <https://platform.openai.com/docs/api-reference/images/create>.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, GenericImageView, ImageFormat};
use images::{Event, Operation};
use serde_json::{Value, json};
use testkit::{IMAGES, Response, changed};

use crate::chain::GATEWAY;

const PATH: &str = "/v1/images/generations";

fn ask(change: Value) -> Response {
    let small = json!({"model": "model-image-2.5-flare", "prompt": "A red boat", "size": "96x64", "seed": 7});
    GATEWAY
        .shared()
        .post(IMAGES, PATH, &changed(small, &change))
}

/// The reply to a request, and its pictures as files.
#[track_caller]
fn made(change: Value) -> (Value, Vec<Vec<u8>>) {
    let response = ask(change);
    assert_eq!(response.status, 200, "{}", response.text());
    let reply = response.json();
    let files = reply["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| file(&image["b64_json"]))
        .collect();
    (reply, files)
}

/// The bytes of a file in base64.
pub(crate) fn file(base64: &Value) -> Vec<u8> {
    STANDARD
        .decode(base64.as_str().expect("a text"))
        .expect("base64")
}

pub(crate) fn decoded(file: &[u8]) -> DynamicImage {
    image::load_from_memory(file).expect("a picture")
}

#[test]
fn reply_matches_the_requested_options() {
    for (change, format, alpha) in [
        (json!({}), ImageFormat::Png, false),
        (
            json!({"output_format": "jpeg", "quality": "high"}),
            ImageFormat::Jpeg,
            false,
        ),
        (
            json!({"output_format": "webp", "output_compression": 50}),
            ImageFormat::WebP,
            false,
        ),
        (json!({"background": "transparent"}), ImageFormat::Png, true),
        (
            json!({"background": "transparent", "output_format": "webp"}),
            ImageFormat::WebP,
            true,
        ),
    ] {
        let (reply, files) = made(change.clone());
        let picture = decoded(&files[0]);
        assert_eq!(image::guess_format(&files[0]).unwrap(), format, "{change}");
        assert_eq!(
            (picture.dimensions(), reply["size"].as_str()),
            ((96, 64), Some("96x64"))
        );
        assert_eq!(
            reply["background"],
            if alpha { "transparent" } else { "opaque" }
        );
        assert_eq!(
            picture.to_rgba8().pixels().any(|pixel| pixel[3] < 255),
            alpha,
            "{change}"
        );
        assert_eq!(
            reply["quality"],
            change
                .get("quality")
                .unwrap_or(&json!("medium"))
                .as_str()
                .unwrap()
        );
        let usage = &reply["usage"];
        let sum =
            usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
        assert_eq!(usage["total_tokens"], sum);
        assert!(
            reply["data"][0]["generation_id"]
                .as_str()
                .is_some_and(|id| id.len() == 36)
        );
    }
}

#[test]
fn without_a_size_a_picture_is_1254_a_side() {
    let (reply, files) = made(json!({"size": null, "quality": "low"}));
    assert_eq!(
        (decoded(&files[0]).dimensions(), &reply["size"]),
        ((1254, 1254), &json!("1254x1254"))
    );
}

#[test]
fn each_picture_has_a_seed_of_its_own() {
    let (_, both) = made(json!({"n": 2}));
    let (_, second) = made(json!({"seed": 8}));
    let (_, again) = made(json!({"n": 2}));
    assert_ne!(both[0], both[1]);
    assert_eq!((&both[1], &both), (&second[0], &again));
    let (_, chance) = made(json!({"seed": null}));
    let (_, other) = made(json!({"seed": null}));
    assert_ne!(chance, other);
}

/// The events of a stream, validated by the grammar.
#[track_caller]
pub(crate) fn events(response: &Response, operation: Operation, count: u32) -> Vec<Event> {
    let data = testkit::events::data(response);
    let events: Vec<_> = data
        .iter()
        .map(|data| Event::read(data).expect("an event"))
        .collect();
    let mut grammar = images::Grammar::new(operation, Some(count));
    events
        .iter()
        .for_each(|event| grammar.push(event).expect("within the grammar"));
    grammar.finish().expect("a whole stream");
    events
}

#[test]
fn a_stream_ends_with_the_pictures_of_the_plain_reply() {
    for count in [1, 2] {
        let (reply, files) = made(json!({"n": count}));
        for previews in 0..=3 {
            let response = ask(json!({"n": count, "stream": true, "partial_images": previews}));
            let events = events(&response, Operation::Generation, count);
            let mut finals = Vec::new();
            let mut seen = 0;
            for event in &events {
                match event {
                    Event::GenerationPreview(preview) => {
                        let preview = STANDARD.decode(&preview.b64_json).unwrap();
                        assert_eq!(decoded(&preview).dimensions(), (96, 64));
                        seen += 1;
                    }
                    Event::GenerationCompleted(last) => {
                        finals.push(STANDARD.decode(&last.b64_json).unwrap());
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(
                (finals, seen),
                (files.clone(), count * previews),
                "{previews} previews each"
            );
            if previews == 0 {
                let fold = events.into_iter().fold(
                    images::Fold::new(Operation::Generation, Some(count)),
                    |mut fold, event| {
                        fold.push(event).unwrap();
                        fold
                    },
                );
                assert_eq!(
                    json!(fold.finish().unwrap().usage),
                    reply["usage"],
                    "streaming costs nothing more"
                );
            }
        }
    }
}

#[test]
fn a_stream_is_framed_as_clients_expect() {
    let response = ask(json!({"stream": true}));
    let text = response.text();
    assert!(text.starts_with(
        "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\","
    ));
    assert!(text.ends_with("}\n\n") && !text.contains("[DONE]"));
    assert_eq!(
        (
            response.header("cache-control"),
            response.header("x-accel-buffering")
        ),
        (Some("no-cache"), Some("no"))
    );
}

#[test]
fn invalid_options_are_rejected_by_name() {
    for (change, param) in [
        (json!({"size": "8193x10"}), "size"),
        (json!({"size": "8000x8000"}), "size"),
        (json!({"size": "1x1"}), "size"),
        (json!({"partial_images": 4}), "partial_images"),
        (
            json!({"partial_images": -1, "stream": true}),
            "partial_images",
        ),
        (json!({"n": 0}), "n"),
        (
            json!({"output_format": "jpeg", "background": "transparent"}),
            "background",
        ),
        (json!({"output_format": "gif"}), "output_format"),
        (json!({"prompt": null}), "prompt"),
    ] {
        let response = ask(change.clone());
        assert_eq!(
            (response.status, &response.json()["error"]["param"]),
            (400, &json!(param)),
            "{change}"
        );
    }
}

#[test]
fn a_client_that_leaves_gives_its_permit_back() {
    let server = GATEWAY.with_image_engine("[limits]\nconcurrency = 1\n");
    let body = json!({"prompt": "A forest", "size": "2048x2048", "n": 10, "stream": true, "partial_images": 3});
    let mut connection = testkit::Connection::open(server.address());
    connection.send(testkit::Request::post(PATH, &body).bearer(IMAGES).bytes());
    assert_eq!(connection.head().unwrap().status, 200);
    assert!(
        connection.chunk().is_ok_and(|chunk| !chunk.is_empty()),
        "it draws"
    );
    let refused = server.post(IMAGES, PATH, &body);
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (429, &json!("gateway_concurrency_limit"))
    );
    connection.disconnect(std::net::Shutdown::Both);
    server.await_quiet();
}
