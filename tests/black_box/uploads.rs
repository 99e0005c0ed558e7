//! Uploads that are malicious, truncated or too large: a gateway refuses them without its upstreams
//! and keeps running.

use std::net::Shutdown;

use image::RgbaImage;
use serde_json::json;
use testkit::{Connection, IMAGES, Request};

use crate::GATEWAY;
use crate::edits::{Form, PATH, png, post, reference, url};

/// A PNG whose header claims this size.
fn claims(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = png(RgbaImage::new(2, 2));
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    bytes
}

/// Pictures whose header claims too large a size are refused with 400, malformed ones do not crash
/// the process, and it keeps running.
#[test]
fn i01_hostile_pictures_are_refused_and_the_process_lives() {
    let server = GATEWAY.with_image_engine("");
    let address = server.address();
    for (width, height) in [
        (50_000, 50_000),
        (u32::MAX, 1),
        (8192, 8192),
        (0, 5),
        (8000, 4000),
    ] {
        let form = Form::new()
            .text("prompt", "x")
            .file("image", &claims(width, height))
            .bytes();
        let response = post(&form).send(address);
        let error = response.json()["error"].clone();
        assert_eq!(
            (response.status, &error["param"]),
            (400, &json!("image")),
            "{width}x{height}"
        );
    }
    let whole = png(reference());
    for at in 0..whole.len() {
        let mut bent = whole.clone();
        bent[at] ^= 0x5a;
        let form = Form::new()
            .text("prompt", "Make it blue")
            .text("size", "64x48")
            .file("image", &bent)
            .bytes();
        let status = post(&form).send(address).status;
        assert!([200, 400].contains(&status), "{status} with byte {at} bent");
    }
    let form = Form::new()
        .text("prompt", "Make it blue")
        .text("size", "64x48")
        .file("image", &whole)
        .bytes();
    assert_eq!(post(&form).send(address).status, 200, "it serves as before");
}

/// A truncated form is refused with 400, and a form whose client disconnects does no harm.
#[test]
fn m02_m12_a_form_cut_at_any_byte_is_no_success() {
    let server = GATEWAY.shared();
    let form = Form::new()
        .text("prompt", "Make it blue")
        .text("size", "32x32")
        .file("image", &png(reference()))
        .bytes();
    let whole = post(&form);
    for cut in (0..form.len() - 2).step_by(3) {
        // The Content-Length is the length of the truncated body: the form is damaged, the
        // request is not.
        let cut = Request::post_bytes(PATH, &form[..cut])
            .bearer(IMAGES)
            .header("content-type", "multipart/form-data; boundary=sgb");
        assert_eq!(cut.send(server.address()).status, 400);
    }
    // A client that disconnects in the middle of its upload.
    let bytes = whole.bytes();
    for cut in (0..bytes.len()).step_by(bytes.len() / 20) {
        let mut connection = Connection::open(server.address());
        connection.send(&bytes[..cut]);
        connection.disconnect(Shutdown::Both);
    }
    assert_eq!(whole.send(server.address()).status, 200);
}

/// A picture or a body that is larger than its limit is refused with 413.
#[test]
fn m05_body_over_its_limit_is_413() {
    let server = GATEWAY.with_image_engine(
        "[limits]\nedit_body = \"64KiB\"\npicture = \"10KiB\"\njson_body = \"16KiB\"\n",
    );
    let picture = vec![0x89; 11 << 10];
    let form = Form::new()
        .text("prompt", "x")
        .file("image", &picture)
        .bytes();
    let large = post(&form).send(server.address());
    assert_eq!(
        (large.status, &large.json()["error"]["param"]),
        (413, &json!("image")),
        "{}",
        large.text()
    );
    let as_json = server.post(
        IMAGES,
        PATH,
        &json!({"prompt": "x", "images": [{"image_url": url(&picture)}]}),
    );
    assert_eq!(
        (as_json.status, &as_json.json()["error"]["param"]),
        (413, &json!("images[0].image_url"))
    );
    for body in [vec![b' '; 65 << 10], vec![b' '; 1 << 20]] {
        let request = Request::post_bytes(PATH, &body).bearer(IMAGES);
        for content_type in ["application/json", "multipart/form-data; boundary=sgb"] {
            let refused = request
                .clone()
                .header("content-type", content_type)
                .send(server.address());
            assert_eq!(
                (refused.status, &refused.json()["error"]["code"]),
                (413, &json!("request_too_large"))
            );
        }
    }
    let generation =
        Request::post_bytes("/v1/images/generations", &vec![b' '; 17 << 10]).bearer(IMAGES);
    assert_eq!(generation.send(server.address()).status, 413);
}
