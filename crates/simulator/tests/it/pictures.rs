//! Pictures: valid files of the requested format and size.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use images::Operation;
use picture::Format;
use serde_json::{Value, json};
use sluicegate_simulator::{Protocol, Simulator};
use testkit::{Connection, End, Response};

use crate::folds::{decode, fold_images, read};

fn exchange(path: &str, body: &Value) -> Response {
    let simulator = Simulator::honest().unwrap();
    let mut client = Connection::open(simulator.address());
    client.post(path, body);
    client.response()
}

fn bytes(image: &Value) -> Vec<u8> {
    STANDARD
        .decode(image["b64_json"].as_str().unwrap())
        .unwrap()
}

#[test]
fn pictures_are_of_the_format_and_size_asked_for() {
    for (name, format) in [
        ("png", Format::Png),
        ("jpeg", Format::Jpeg),
        ("webp", Format::Webp),
    ] {
        for background in ["opaque", "transparent"] {
            let body = json!({"prompt": "A boat.", "size": "48x33", "output_format": name, "background": background});
            let reply = exchange("/v1/images/generations", &body).json();
            assert_eq!(
                (&reply["size"], &reply["output_format"]),
                (&json!("48x33"), &json!(name))
            );
            let bytes = bytes(&reply["data"][0]);
            assert_eq!(Format::sniff(&bytes), Some(format), "{name}");
            let pixels = picture::decode(&bytes).unwrap();
            assert_eq!((pixels.width(), pixels.height()), (48, 33), "{name}");
            let is_transparent = pixels.to_rgba8().pixels().all(|pixel| pixel.0[3] == 0);
            assert_eq!(
                is_transparent,
                background == "transparent" && name != "jpeg",
                "{name}"
            );
        }
    }
    let reply = exchange("/v1/images/generations", &json!({"prompt": "A boat."})).json();
    assert_eq!(reply["size"], "1254x1254");
    assert_eq!(
        picture::decode(&bytes(&reply["data"][0])).unwrap().width(),
        1254
    );
}

#[test]
fn an_unsupported_size_is_refused() {
    for size in ["0x64", "64x100000", "big"] {
        let answer = exchange(
            "/v1/images/generations",
            &json!({"prompt": "A boat.", "size": size}),
        );
        assert_eq!(
            (answer.status, &answer.json()["error"]["param"]),
            (400, &json!("size"))
        );
    }
}

#[test]
fn a_stream_of_pictures_amounts_to_the_plain_reply() {
    for (path, operation) in [
        ("/v1/images/generations", Operation::Generation),
        ("/v1/images/edits", Operation::Edit),
    ] {
        let url = "data:image/png;base64,iVBORw0KGgo=";
        let mut body =
            json!({"prompt": "A boat.", "size": "64x64", "n": 2, "images": [{"image_url": url}]});
        let plain = read(Protocol::Images, &exchange(path, &body).body);
        body["stream"] = true.into();
        let streamed = exchange(path, &body);
        assert_eq!(streamed.end, End::Complete);
        let events = decode(&streamed.body).unwrap();
        assert_eq!(fold_images(&events, operation, 2).unwrap(), plain);
        assert_ne!(plain["data"][0]["b64_json"], plain["data"][1]["b64_json"]);

        body["partial_images"] = 2.into();
        let events = decode(&exchange(path, &body).body).unwrap();
        assert_eq!(events.len(), 6);
        assert!(fold_images(&events, operation, 2).is_ok());
        let indices = events.iter().map(|data| {
            serde_json::from_str::<Value>(data).unwrap()["partial_image_index"].as_u64()
        });
        assert_eq!(
            indices.collect::<Vec<_>>(),
            [Some(0), Some(1), None, Some(0), Some(1), None]
        );
    }
}

#[test]
fn an_edit_may_be_a_form() {
    let simulator = Simulator::honest().unwrap();
    let mut client = Connection::open(simulator.address());
    let form = |fields: &[(&str, &str)]| {
        let parts = fields.iter().map(|(name, value)| {
            format!("--sgb\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}\r\n")
        });
        let body = parts.collect::<String>() + "--sgb--\r\n";
        let kind = "multipart/form-data; boundary=\"sgb\"";
        format!(
            "POST /v1/images/edits HTTP/1.1\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let fields = [
        ("\"prompt\"", "42"),
        ("\"model\"", "m"),
        ("\"size\"", "64x64"),
        ("\"stream\"", "true"),
        ("\"n\"", "2"),
        ("\"image[]\"; filename=\"a.png\"", "first\r\n--sg"),
        ("\"image[]\"; filename=\"b.png\"", "second"),
    ];
    client.send(form(&fields));
    let events = decode(&client.response().body).unwrap();
    assert_eq!(
        fold_images(&events, Operation::Edit, 2).unwrap()["usage"]["input_tokens_details"]["image_tokens"],
        646
    );
    let request = simulator.requests().remove(0);
    assert_eq!((request.model().as_str(), request.streams()), ("m", true));

    client.send(form(&fields[..3]));
    let answer = client.response();
    assert_eq!(
        (answer.status, &answer.json()["error"]["param"]),
        (400, &json!("image"))
    );
}
