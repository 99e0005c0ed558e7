//! Image edits: both request formats, masks, and inputs that are not valid pictures:
//! <https://platform.openai.com/docs/api-reference/images/createEdit>.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, GenericImageView, ImageFormat, Rgba, RgbaImage};
use images::{Event, Operation};
use serde_json::{Value, json};
use testkit::{IMAGES, Request, Response, changed};

use crate::chain::GATEWAY;
use crate::images::{decoded, events, file};

pub(crate) const PATH: &str = "/v1/images/edits";

fn encoded(picture: RgbaImage, format: ImageFormat) -> Vec<u8> {
    let picture = DynamicImage::from(picture);
    let picture = if format == ImageFormat::Jpeg {
        picture.into_rgb8().into()
    } else {
        picture
    };
    let mut bytes = Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, format)
        .expect("a picture can be written");
    bytes.into_inner()
}

/// A picture in which all neighbouring pixels differ.
pub(crate) fn reference() -> RgbaImage {
    RgbaImage::from_fn(64, 48, |x, y| {
        Rgba([(x * 4) as u8, (y * 5) as u8, ((x + y) % 2 * 90) as u8, 255])
    })
}

/// A mask that allows changes in the left half.
fn mask() -> RgbaImage {
    RgbaImage::from_fn(64, 48, |x, _| Rgba([0, 0, 0, if x < 32 { 0 } else { 255 }]))
}

pub(crate) fn png(picture: RgbaImage) -> Vec<u8> {
    encoded(picture, ImageFormat::Png)
}

pub(crate) fn url(file: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(file))
}

fn body(change: &Value) -> Value {
    let edit = json!({
        "model": "model-image-2.5-sunburst", "prompt": "Replace the transparent region with grass.", "size": "auto",
        "seed": 3, "images": [{"image_url": url(&png(reference()))}], "mask": {"image_url": url(&png(mask()))},
    });
    changed(edit, change)
}

fn ask(change: &Value) -> Response {
    GATEWAY.shared().post(IMAGES, PATH, &body(change))
}

/// A form as the official clients send it.
pub(crate) struct Form(Vec<u8>);

impl Form {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    fn part(mut self, head: &str, data: &[u8]) -> Self {
        self.0
            .extend(format!("--sgb\r\nContent-Disposition: form-data; {head}\r\n\r\n").bytes());
        self.0.extend(data);
        self.0.extend(b"\r\n");
        self
    }

    pub(crate) fn text(self, name: &str, value: &str) -> Self {
        self.part(&format!("name=\"{name}\""), value.as_bytes())
    }

    pub(crate) fn file(self, name: &str, data: &[u8]) -> Self {
        self.part(
            &format!(
                "name=\"{name}\"; filename=\"upload\"\r\nContent-Type: application/octet-stream"
            ),
            data,
        )
    }

    pub(crate) fn bytes(mut self) -> Vec<u8> {
        self.0.extend(b"--sgb--\r\n");
        self.0
    }

    fn send(self) -> Response {
        post(&self.bytes()).send(GATEWAY.shared().address())
    }
}

pub(crate) fn post(form: &[u8]) -> Request {
    let content_type = "multipart/form-data; boundary=sgb";
    Request::post_bytes(PATH, form)
        .bearer(IMAGES)
        .header("content-type", content_type)
}

/// A form with the same edit as `body`.
fn form() -> Form {
    Form::new()
        .file("mask", &png(mask()))
        .text("prompt", "Replace the transparent region with grass.")
        .text("model", "model-image-2.5-sunburst")
        .text("size", "auto")
        .text("seed", "3")
        .file("image", &png(reference()))
}

#[track_caller]
fn picture(response: &Response) -> DynamicImage {
    assert_eq!(response.status, 200, "{}", response.text());
    decoded(&file(&response.json()["data"][0]["b64_json"]))
}

#[test]
fn both_forms_of_a_request_give_the_same_picture() {
    let (from_json, from_form) = (ask(&json!({})), form().send());
    assert_eq!(picture(&from_json), picture(&from_form));
    let without_id = |response: &Response| {
        let mut reply = response.json();
        for key in ["created", "data"] {
            reply[key] = Value::Null;
        }
        reply
    };
    assert_eq!(without_id(&from_json), without_id(&from_form));
}

#[test]
fn outside_of_the_mask_no_pixel_changes() {
    let response = ask(&json!({}));
    let (made, kept) = (picture(&response).to_rgba8(), reference());
    assert_eq!(made.dimensions(), kept.dimensions());
    assert_eq!(response.json()["size"], "64x48");
    let changed = |left: bool| {
        kept.enumerate_pixels()
            .filter(move |(x, ..)| (*x < 32) == left)
    };
    assert!(
        changed(false).all(|(x, y, pixel)| made.get_pixel(x, y) == pixel),
        "the right half is as it was"
    );
    let greener = changed(true).filter(|(x, y, _)| {
        let [red, green, blue, _] = made.get_pixel(*x, *y).0;
        green > red && green > blue
    });
    assert!(greener.count() > 32 * 48 / 2, "the left half is grass");
}

#[test]
fn edit_streams_previews_and_the_final_picture() {
    let plain = picture(&ask(&json!({})));
    let response = ask(&json!({"stream": true, "partial_images": 2}));
    let events = events(&response, Operation::Edit, 1);
    let [
        Event::EditPreview(first),
        Event::EditPreview(second),
        Event::EditCompleted(last),
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        (first.partial_image_index, second.partial_image_index),
        (0, 1)
    );
    assert_eq!(decoded(&STANDARD.decode(&last.b64_json).unwrap()), plain);
    assert_eq!(
        decoded(&STANDARD.decode(&first.b64_json).unwrap()).dimensions(),
        (64, 48)
    );
    let from_form = form()
        .text("stream", "true")
        .text("partial_images", "2")
        .send();
    let pictures = |events: &[Event]| {
        events
            .iter()
            .map(Event::data)
            .map(|data| serde_json::from_str::<Value>(&data).unwrap()["b64_json"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        pictures(&crate::images::events(&from_form, Operation::Edit, 1)),
        pictures(&events)
    );
}

#[test]
fn two_references_come_in_every_format_and_under_every_name() {
    let (first, second) = (
        reference(),
        RgbaImage::from_pixel(20, 20, Rgba([200, 0, 0, 255])),
    );
    let prompt = "Place the second image on the right of the first.";
    let mut seen = Vec::new();
    for (one, other) in [
        ("image[]", "image[]"),
        ("image", "image"),
        ("image[0]", "image[1]"),
        ("image", "image[]"),
    ] {
        let form = Form::new()
            .text("prompt", prompt)
            .text("seed", "1")
            .text("size", "64x48");
        seen.push(picture(
            &form
                .file(one, &png(first.clone()))
                .file(other, &png(second.clone()))
                .send(),
        ));
    }
    assert!(
        seen.iter().all(|picture| picture == &seen[0]),
        "the names make no difference"
    );
    for format in [ImageFormat::Jpeg, ImageFormat::WebP] {
        let form = Form::new()
            .text("prompt", prompt)
            .file("image", &encoded(reference(), format));
        let made = form
            .text("size", "64x48")
            .file("image[]", &encoded(second.clone(), format))
            .send();
        assert_eq!(picture(&made).dimensions(), (64, 48), "{format:?}");
    }
}

/// Sources and masks that are not valid pictures are refused with 400 that names their field.
#[test]
fn i05_i06_invalid_edit_is_rejected_by_field() {
    let small = url(&png(RgbaImage::new(8, 8)));
    let solid = url(&encoded(reference(), ImageFormat::Png));
    let opaque = url(&{
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::from(mask())
            .into_rgb8()
            .write_to(&mut bytes, ImageFormat::Png)
            .unwrap();
        bytes.into_inner()
    });
    let gif = format!(
        "data:image/gif;base64,{}",
        STANDARD.encode(encoded(reference(), ImageFormat::Gif))
    );
    let three = vec![json!({"image_url": solid}); 3];
    for (change, param) in [
        (json!({"images": null}), "images"),
        (json!({"images": []}), "images"),
        (json!({"images": three}), "images"),
        (json!({"prompt": null}), "prompt"),
        (
            json!({"images": [{"file_id": "file-1"}]}),
            "images[0].file_id",
        ),
        (
            json!({"images": [{"image_url": solid}, {"file_id": "file-1"}]}),
            "images[1].file_id",
        ),
        (json!({"mask": {"file_id": "file-1"}}), "mask.file_id"),
        (json!({"mask": {"image_url": small}}), "mask"),
        (json!({"mask": {"image_url": opaque}}), "mask"),
        (json!({"partial_images": -1}), "partial_images"),
        (json!({"partial_images": 4}), "partial_images"),
        (
            json!({"images": [{"image_url": gif}]}),
            "images[0].image_url",
        ),
        (
            json!({"images": [{"image_url": "data:image/png;base64,AAAA"}]}),
            "images[0].image_url",
        ),
        (
            json!({"images": [{"image_url": "data:image/png;base64,A A="}]}),
            "images[0].image_url",
        ),
        (
            json!({"images": [{"image_url": "http://example.com/a.png"}]}),
            "images[0].image_url",
        ),
        (
            json!({"images": [{"image_url": "https://localhost/a.png"}]}),
            "images[0].image_url",
        ),
        (
            json!({"images": [{"image_url": "https://127.0.0.1/a.png"}]}),
            "images[0].image_url",
        ),
        (
            json!({"images": [{"image_url": "https://[::ffff:10.0.0.1]/a.png"}]}),
            "images[0].image_url",
        ),
    ] {
        let response = ask(&change);
        assert_eq!(
            (response.status, &response.json()["error"]["param"]),
            (400, &json!(param)),
            "{change}"
        );
        assert!(response.json()["error"]["code"].is_string());
    }
}

/// Missing, repeated and invalid parts are refused with 400 that names the part.
#[test]
fn m06_invalid_form_is_rejected_by_part() {
    let image = png(reference());
    let prompt = || Form::new().text("prompt", "Add a red sail");
    for (form, param) in [
        (prompt(), json!("image")),
        (Form::new().file("image", &image), json!("prompt")),
        (
            prompt().file("image", b"GIF89a\x05\x00\x07\x00\x00\x00\x00"),
            json!("image"),
        ),
        (prompt().file("image", b"<svg/>"), json!("image")),
        (
            prompt()
                .file("image", &image)
                .file("mask", b"\xff\xd8\xff\xe0 a jpeg file"),
            json!("mask"),
        ),
        (
            prompt()
                .file("image", &image)
                .file("mask", &png(RgbaImage::new(8, 8))),
            json!("mask"),
        ),
        (
            prompt().file("image", &image).text("prompt", "twice"),
            json!("prompt"),
        ),
        (prompt().file("image", &image).text("n", "many"), json!("n")),
        (
            prompt().file("image", &image).text("partial_images", "-1"),
            json!("partial_images"),
        ),
        (
            prompt().file("image", &image).text("partial_images", "4"),
            json!("partial_images"),
        ),
    ] {
        let response = form.send();
        assert_eq!(
            (response.status, &response.json()["error"]["param"]),
            (400, &param),
            "{}",
            response.text()
        );
    }
    let no_boundary = Request::post_bytes(PATH, b"")
        .bearer(IMAGES)
        .header("content-type", "multipart/form-data");
    assert_eq!(no_boundary.send(GATEWAY.shared().address()).status, 400);
    let other = Request::post_bytes(PATH, b"")
        .bearer(IMAGES)
        .header("content-type", "text/plain");
    assert_eq!(other.send(GATEWAY.shared().address()).status, 415);
}
