//! Image requests.
//!
//! The bound is twice the body, plus the decoded references, plus twice the pixels of one output,
//! plus the response, plus a constant. A pixel has four bytes. Memory that libwebp allocates itself
//! is not counted.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use image::{ImageFormat, Rgba, RgbaImage};
use image_engine::{EmbeddedImageEngine, Options};
use serde_json::{Value, json};

use super::{Scene, alone};
use crate::state::Engines;

#[test]
fn an_image_request_keeps_to_its_memory() {
    alone(
        "memory::pictures::an_image_request_keeps_to_its_memory",
        measure_all(),
    );
}

async fn measure_all() {
    let scene = Scene::new(Engines {
        text: None,
        images: Some(Arc::new(EmbeddedImageEngine::new(Options::default()))),
    });
    // The first requests load fonts and tables, which stay in memory.
    let warm = json!({"prompt": "The word \"HELLO\" over a house by the sea", "size": "64x64"});
    measure(&scene, &ImageRequest::generation(warm.clone(), 64)).await;
    measure(&scene, &ImageRequest::json_edit(64, ImageFormat::Png)).await;

    let large = |change: Value| {
        let mut body =
            json!({"prompt": "A house by the sea at sunset", "size": "2048x2048", "seed": 1});
        change
            .as_object()
            .into_iter()
            .flatten()
            .for_each(|(name, value)| body[name] = value.clone());
        ImageRequest::generation(body, 2048)
    };
    for request in [
        large(json!({})),
        large(json!({"n": 3, "quality": "max"})),
        large(
            json!({"output_format": "jpeg", "output_compression": 100, "stream": true, "partial_images": 3}),
        ),
        large(json!({"background": "transparent", "output_format": "webp"})),
        ImageRequest::json_edit(1536, ImageFormat::Png),
        ImageRequest::json_edit(1536, ImageFormat::Jpeg),
        ImageRequest::form_edit(1536),
    ] {
        let (status, peak, bound) = measure(&scene, &request).await;
        assert_eq!(status, StatusCode::OK, "{}", request.name);
        assert!(
            peak <= bound + CONSTANT,
            "{}: {peak} bytes, where {bound} are allowed",
            request.name
        );
    }
    for request in ImageRequest::hostile() {
        let (status, peak, bound) = measure(&scene, &request).await;
        assert!(status.is_client_error(), "{}: {status}", request.name);
        assert!(
            peak <= bound + CONSTANT,
            "{}: {peak} bytes, where {bound} are allowed",
            request.name
        );
    }
}

/// A request with the number of pixels of its references and of one output.
struct ImageRequest {
    name: &'static str,
    path: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
    references: usize,
    output: usize,
}

impl ImageRequest {
    fn generation(body: Value, side: usize) -> Self {
        let (name, path) = ("a generation", "/v1/images/generations");
        Self {
            name,
            path,
            content_type: JSON,
            body: body.to_string().into_bytes(),
            references: 0,
            output: side * side,
        }
    }

    fn json_edit(side: u32, format: ImageFormat) -> Self {
        let (reference, mask) = (noise(side, format), mask(side));
        let media_type = format.to_mime_type();
        let url =
            |media_type, file: &[u8]| format!("data:{media_type};base64,{}", STANDARD.encode(file));
        let body = json!({
            "prompt": "Replace the transparent region with grass", "size": format!("{side}x{side}"),
            "images": [{"image_url": url(media_type, &reference)}], "mask": {"image_url": url("image/png", &mask)},
        });
        Self::edit("an edit as JSON", JSON, body.to_string().into_bytes(), side)
    }

    fn form_edit(side: u32) -> Self {
        let mut body = Vec::new();
        let size = format!("{side}x{side}");
        let (reference, mask) = (noise(side, ImageFormat::Png), mask(side));
        for (name, data) in [
            ("prompt", &b"Make it blue"[..]),
            ("size", size.as_bytes()),
            ("image", &reference),
            ("mask", &mask),
        ] {
            body.extend_from_slice(
                format!("--sgb\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n")
                    .as_bytes(),
            );
            body.extend_from_slice(data);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--sgb--\r\n");
        Self::edit("an edit as a form", FORM, body, side)
    }

    /// Requests that are refused. They may use twice the memory of their body, and none for pixels.
    fn hostile() -> Vec<Self> {
        let form = |name, body| Self {
            references: 0,
            output: 0,
            ..Self::edit(name, FORM, body, 0)
        };
        let part = "--sgb\r\nContent-Disposition: form-data; name=\"";
        let claims = [
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xc3\x50\0\0\xc3\x50\x08\x06\0\0\0".as_slice(),
            &[0; 64],
        ]
        .concat();
        let prompt = format!("{part}prompt\"\r\n\r\nx\r\n{part}image\"\r\n\r\n");
        let url = format!("data:image/png;base64,{}", STANDARD.encode(&claims));
        let as_json = |url: &str| {
            json!({"prompt": "x", "images": [{"image_url": url}]})
                .to_string()
                .into_bytes()
        };
        vec![
            form(
                "50,000 x 50,000 pixels in a form",
                [prompt.as_bytes(), &claims, b"\r\n--sgb--"].concat(),
            ),
            form(
                "a hundred thousand parts",
                format!("{part}x\"\r\n\r\n\r\n")
                    .repeat(100_000)
                    .into_bytes(),
            ),
            form(
                "a head without an end",
                [part.as_bytes(), &vec![b'x'; 8 << 20]].concat(),
            ),
            form("no boundary at all", vec![b'x'; 8 << 20]),
            form(
                "a picture over its limit",
                [prompt.as_bytes(), &vec![0; 21 << 20]].concat(),
            ),
            form(
                "a body over its limit",
                [prompt.as_bytes(), &vec![b'\n'; 65 << 20]].concat(),
            ),
            Self {
                content_type: JSON,
                ..form("50,000 x 50,000 pixels in JSON", as_json(&url))
            },
            Self {
                content_type: JSON,
                ..form(
                    "bad base64",
                    as_json(&format!("{url}{}", "*".repeat(8 << 20))),
                )
            },
            Self {
                content_type: JSON,
                ..form("bad JSON", vec![b'['; 8 << 20])
            },
            Self {
                content_type: JSON,
                ..form("JSON over its limit", vec![b' '; 65 << 20])
            },
        ]
    }

    fn edit(name: &'static str, content_type: &'static str, body: Vec<u8>, side: u32) -> Self {
        let pixels = (side * side) as usize;
        Self {
            name,
            path: "/v1/images/edits",
            content_type,
            body,
            references: 2 * pixels,
            output: pixels,
        }
    }
}

/// Sends a request; returns its status, its peak memory and the bound.
async fn measure(scene: &Scene, request: &ImageRequest) -> (StatusCode, usize, usize) {
    let taken = scene
        .send(request.path, request.content_type, &request.body)
        .await;
    let bound =
        2 * request.body.len() + 4 * request.references + 2 * 4 * request.output + taken.reply;
    (taken.status, taken.peak, bound)
}

/// Returns an image of noise, which does not compress.
fn noise(side: u32, format: ImageFormat) -> Vec<u8> {
    let mut state = 1_u32;
    let picture = image::RgbImage::from_fn(side, side, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        image::Rgb([(state >> 24) as u8, (state >> 16) as u8, (state >> 8) as u8])
    });
    encoded(picture.into(), format)
}

fn mask(side: u32) -> Vec<u8> {
    let half = RgbaImage::from_fn(side, side, |x, _| {
        Rgba([0, 0, 0, if x < side / 2 { 0 } else { 255 }])
    });
    encoded(half.into(), ImageFormat::Png)
}

fn encoded(picture: image::DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, format)
        .expect("a picture can be written");
    bytes.into_inner()
}

const JSON: &str = "application/json";
const FORM: &str = "multipart/form-data; boundary=sgb";
/// The constant part of the bound: channels, small buffers and the encoders' tables.
const CONSTANT: usize = 1 << 20;
