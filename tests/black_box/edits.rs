//! Pictures from pictures: both forms of a request, masks, and everything that is no picture (spec §4.6).

use std::io::Cursor;
use std::net::Shutdown;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, GenericImageView, ImageFormat, Rgba, RgbaImage};
use images::{Event, Operation};
use serde_json::{Value, json};

use crate::client::{Connection, Request, Response, changed};
use crate::images::{decoded, events, file};
use crate::server::{IMAGES, Server};

const PATH: &str = "/v1/images/edits";

fn encoded(picture: RgbaImage, format: ImageFormat) -> Vec<u8> {
    let picture = DynamicImage::from(picture);
    let picture = if format == ImageFormat::Jpeg { picture.into_rgb8().into() } else { picture };
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).expect("a picture can be written");
    bytes.into_inner()
}

/// A picture in which no two neighbours are alike.
fn reference() -> RgbaImage {
    RgbaImage::from_fn(64, 48, |x, y| Rgba([(x * 4) as u8, (y * 5) as u8, ((x + y) % 2 * 90) as u8, 255]))
}

/// Its left half may be changed.
fn mask() -> RgbaImage {
    RgbaImage::from_fn(64, 48, |x, _| Rgba([0, 0, 0, if x < 32 { 0 } else { 255 }]))
}

fn png(picture: RgbaImage) -> Vec<u8> {
    encoded(picture, ImageFormat::Png)
}

fn url(file: &[u8]) -> String {
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
    Server::shared().post(IMAGES, PATH, &body(change))
}

/// A form as the official clients send it.
struct Form(Vec<u8>);

impl Form {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn part(mut self, head: &str, data: &[u8]) -> Self {
        self.0.extend(format!("--sgb\r\nContent-Disposition: form-data; {head}\r\n\r\n").bytes());
        self.0.extend(data);
        self.0.extend(b"\r\n");
        self
    }

    fn text(self, name: &str, value: &str) -> Self {
        self.part(&format!("name=\"{name}\""), value.as_bytes())
    }

    fn file(self, name: &str, data: &[u8]) -> Self {
        self.part(&format!("name=\"{name}\"; filename=\"upload\"\r\nContent-Type: application/octet-stream"), data)
    }

    fn bytes(mut self) -> Vec<u8> {
        self.0.extend(b"--sgb--\r\n");
        self.0
    }

    fn send(self) -> Response {
        post(&self.bytes()).send(Server::shared().address())
    }
}

fn post(form: &[u8]) -> Request {
    let content_type = "multipart/form-data; boundary=sgb";
    Request::post_bytes(PATH, form).bearer(IMAGES).header("content-type", content_type)
}

/// The same edit as `body` asks for.
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
    let changed = |left: bool| kept.enumerate_pixels().filter(move |(x, ..)| (*x < 32) == left);
    assert!(changed(false).all(|(x, y, pixel)| made.get_pixel(x, y) == pixel), "the right half is as it was");
    let greener = changed(true).filter(|(x, y, _)| {
        let [red, green, blue, _] = made.get_pixel(*x, *y).0;
        green > red && green > blue
    });
    assert!(greener.count() > 32 * 48 / 2, "the left half is grass");
}

#[test]
fn an_edit_streams_its_previews_and_the_picture_of_the_plain_reply() {
    let plain = picture(&ask(&json!({})));
    let response = ask(&json!({"stream": true, "partial_images": 2}));
    let events = events(&response, Operation::Edit, 1);
    let [Event::EditPreview(first), Event::EditPreview(second), Event::EditCompleted(last)] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!((first.partial_image_index, second.partial_image_index), (0, 1));
    assert_eq!(decoded(&STANDARD.decode(&last.b64_json).unwrap()), plain);
    assert_eq!(decoded(&STANDARD.decode(&first.b64_json).unwrap()).dimensions(), (64, 48));
    let from_form = form().text("stream", "true").text("partial_images", "2").send();
    let pictures = |events: &[Event]| {
        events
            .iter()
            .map(Event::data)
            .map(|data| serde_json::from_str::<Value>(&data).unwrap()["b64_json"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(pictures(&crate::images::events(&from_form, Operation::Edit, 1)), pictures(&events));
}

#[test]
fn two_references_come_in_every_format_and_under_every_name() {
    let (first, second) = (reference(), RgbaImage::from_pixel(20, 20, Rgba([200, 0, 0, 255])));
    let prompt = "Place the second image on the right of the first.";
    let mut seen = Vec::new();
    for (one, other) in [("image[]", "image[]"), ("image", "image"), ("image[0]", "image[1]"), ("image", "image[]")] {
        let form = Form::new().text("prompt", prompt).text("seed", "1").text("size", "64x48");
        seen.push(picture(&form.file(one, &png(first.clone())).file(other, &png(second.clone())).send()));
    }
    assert!(seen.iter().all(|picture| picture == &seen[0]), "the names make no difference");
    for format in [ImageFormat::Jpeg, ImageFormat::WebP] {
        let form = Form::new().text("prompt", prompt).file("image", &encoded(reference(), format));
        let made = form.text("size", "64x48").file("image[]", &encoded(second.clone(), format)).send();
        assert_eq!(picture(&made).dimensions(), (64, 48), "{format:?}");
    }
}

#[test]
fn what_is_no_edit_is_refused_by_name() {
    let small = url(&png(RgbaImage::new(8, 8)));
    let solid = url(&encoded(reference(), ImageFormat::Png));
    let opaque = url(&{
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::from(mask()).into_rgb8().write_to(&mut bytes, ImageFormat::Png).unwrap();
        bytes.into_inner()
    });
    let gif = format!("data:image/gif;base64,{}", STANDARD.encode(encoded(reference(), ImageFormat::Gif)));
    let three = vec![json!({"image_url": solid}); 3];
    for (change, param) in [
        (json!({"images": null}), "images"),
        (json!({"images": []}), "images"),
        (json!({"images": three}), "images"),
        (json!({"prompt": null}), "prompt"),
        (json!({"images": [{"file_id": "file-1"}]}), "images[0].file_id"),
        (json!({"images": [{"image_url": solid}, {"file_id": "file-1"}]}), "images[1].file_id"),
        (json!({"mask": {"file_id": "file-1"}}), "mask.file_id"),
        (json!({"mask": {"image_url": small}}), "mask"),
        (json!({"mask": {"image_url": opaque}}), "mask"),
        (json!({"partial_images": -1}), "partial_images"),
        (json!({"partial_images": 4}), "partial_images"),
        (json!({"images": [{"image_url": gif}]}), "images[0].image_url"),
        (json!({"images": [{"image_url": "data:image/png;base64,AAAA"}]}), "images[0].image_url"),
        (json!({"images": [{"image_url": "data:image/png;base64,A A="}]}), "images[0].image_url"),
        (json!({"images": [{"image_url": "http://example.com/a.png"}]}), "images[0].image_url"),
        (json!({"images": [{"image_url": "https://localhost/a.png"}]}), "images[0].image_url"),
        (json!({"images": [{"image_url": "https://127.0.0.1/a.png"}]}), "images[0].image_url"),
        (json!({"images": [{"image_url": "https://[::ffff:10.0.0.1]/a.png"}]}), "images[0].image_url"),
    ] {
        let response = ask(&change);
        assert_eq!((response.status, &response.json()["error"]["param"]), (400, &json!(param)), "{change}");
        assert!(response.json()["error"]["code"].is_string());
    }
}

#[test]
fn what_is_no_form_is_refused_by_name() {
    let image = png(reference());
    let prompt = || Form::new().text("prompt", "Add a red sail");
    for (form, param) in [
        (prompt(), json!("image")),
        (Form::new().file("image", &image), json!("prompt")),
        (prompt().file("image", b"GIF89a\x05\x00\x07\x00\x00\x00\x00"), json!("image")),
        (prompt().file("image", b"<svg/>"), json!("image")),
        (prompt().file("image", &image).file("mask", b"\xff\xd8\xff\xe0 a jpeg file"), json!("mask")),
        (prompt().file("image", &image).file("mask", &png(RgbaImage::new(8, 8))), json!("mask")),
        (prompt().file("image", &image).text("prompt", "twice"), json!("prompt")),
        (prompt().file("image", &image).text("n", "many"), json!("n")),
        (prompt().file("image", &image).text("partial_images", "-1"), json!("partial_images")),
        (prompt().file("image", &image).text("partial_images", "4"), json!("partial_images")),
    ] {
        let response = form.send();
        assert_eq!((response.status, &response.json()["error"]["param"]), (400, &param), "{}", response.text());
    }
    let no_boundary = Request::post_bytes(PATH, b"").bearer(IMAGES).header("content-type", "multipart/form-data");
    assert_eq!(no_boundary.send(Server::shared().address()).status, 400);
    let other = Request::post_bytes(PATH, b"").bearer(IMAGES).header("content-type", "text/plain");
    assert_eq!(other.send(Server::shared().address()).status, 415);
}

/// A PNG whose header says more than there is.
fn claims(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = png(RgbaImage::new(2, 2));
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    bytes
}

#[test]
fn hostile_pictures_are_refused_and_the_process_lives() {
    let server = Server::configured("");
    let address = server.address();
    for (width, height) in [(50_000, 50_000), (u32::MAX, 1), (8192, 8192), (0, 5), (8000, 4000)] {
        let form = Form::new().text("prompt", "x").file("image", &claims(width, height)).bytes();
        let response = post(&form).send(address);
        let error = response.json()["error"].clone();
        assert_eq!((response.status, &error["param"]), (400, &json!("image")), "{width}x{height}");
    }
    let whole = png(reference());
    for at in 0..whole.len() {
        let mut bent = whole.clone();
        bent[at] ^= 0x5a;
        let form = Form::new().text("prompt", "Make it blue").text("size", "64x48").file("image", &bent).bytes();
        let status = post(&form).send(address).status;
        assert!([200, 400].contains(&status), "{status} with byte {at} bent");
    }
    let form = Form::new().text("prompt", "Make it blue").text("size", "64x48").file("image", &whole).bytes();
    assert_eq!(post(&form).send(address).status, 200, "it serves as before");
}

#[test]
fn a_form_cut_at_any_byte_is_no_success() {
    let server = Server::shared();
    let form =
        Form::new().text("prompt", "Make it blue").text("size", "32x32").file("image", &png(reference())).bytes();
    let whole = post(&form);
    for cut in (0..form.len() - 2).step_by(3) {
        // The length is that of what is sent: the form is damaged, the request is not.
        let cut = Request::post_bytes(PATH, &form[..cut])
            .bearer(IMAGES)
            .header("content-type", "multipart/form-data; boundary=sgb");
        assert_eq!(cut.send(server.address()).status, 400);
    }
    // A client that leaves in the midst of its upload.
    let bytes = whole.bytes();
    for cut in (0..bytes.len()).step_by(bytes.len() / 20) {
        let mut connection = Connection::open(server.address());
        connection.send(&bytes[..cut]);
        connection.vanish(Shutdown::Both);
    }
    assert_eq!(whole.send(server.address()).status, 200);
}

#[test]
fn what_is_larger_than_the_limits_is_413() {
    let server = Server::configured("[limits]\nedit_body = \"64KiB\"\npicture = \"10KiB\"\njson_body = \"16KiB\"\n");
    let picture = vec![0x89; 11 << 10];
    let form = Form::new().text("prompt", "x").file("image", &picture).bytes();
    let large = post(&form).send(server.address());
    assert_eq!((large.status, &large.json()["error"]["param"]), (413, &json!("image")), "{}", large.text());
    let as_json = server.post(IMAGES, PATH, &json!({"prompt": "x", "images": [{"image_url": url(&picture)}]}));
    assert_eq!((as_json.status, &as_json.json()["error"]["param"]), (413, &json!("images[0].image_url")));
    for body in [vec![b' '; 65 << 10], vec![b' '; 1 << 20]] {
        let request = Request::post_bytes(PATH, &body).bearer(IMAGES);
        for content_type in ["application/json", "multipart/form-data; boundary=sgb"] {
            let refused = request.clone().header("content-type", content_type).send(server.address());
            assert_eq!((refused.status, &refused.json()["error"]["code"]), (413, &json!("request_too_large")));
        }
    }
    let generation = Request::post_bytes("/v1/images/generations", &vec![b' '; 17 << 10]).bearer(IMAGES);
    assert_eq!(generation.send(server.address()).status, 413);
}
