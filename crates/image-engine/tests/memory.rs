//! The memory of a request: the budget that the crate promises, compared with every allocation.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

use std::io::Cursor;

use bytes::Bytes;
use engine::{
    Background, ImageEdit, ImageEngine, ImageEvent, ImageFormat, ImageRequest, Pixels, Quality,
    Size,
};
use futures_util::StreamExt;
use image::{DynamicImage, Rgba, RgbaImage};
use peak_alloc::PeakAlloc;
use sluicegate_image_engine::{EmbeddedImageEngine, Options};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const SIDE: u32 = 2048;
const CANVAS: usize = (SIDE * SIDE * 4) as usize;
/// Tables, rows, threads.
const SPARE: usize = 4 << 20;

/// A request takes no more memory than the README promises. This is the only test of its binary,
/// because the allocator counts the whole process.
#[tokio::test]
async fn a_request_keeps_its_budget() {
    let engine = EmbeddedImageEngine::new(Options {
        threads: 1,
        waiting: 0,
    });
    let photo = encoded(photo(), image::ImageFormat::Jpeg);
    let drawing = encoded(self::photo(), image::ImageFormat::Png);
    let mask = encoded(mask(), image::ImageFormat::Png);
    let edit = |reference: &Bytes| ImageEdit {
        references: vec![reference.clone()],
        mask: Some(mask.clone()),
    };
    for format in [ImageFormat::Png, ImageFormat::Jpeg] {
        check(
            &engine,
            0,
            ImageRequest {
                previews: 1,
                ..request("a red circle on grass", format)
            },
        )
        .await;
        for prompt in ["replace this region with grass", "sharpen it"] {
            check(
                &engine,
                2,
                ImageRequest {
                    edit: Some(edit(&photo)),
                    ..request(prompt, format)
                },
            )
            .await;
        }
    }
    let behind = request("replace the background with grass", ImageFormat::Png);
    check(
        &engine,
        2,
        ImageRequest {
            edit: Some(edit(&drawing)),
            ..behind
        },
    )
    .await;
    for prompt in [
        "place the second onto the first",
        "use the second as the background",
    ] {
        let edit = ImageEdit {
            references: vec![photo.clone(), drawing.clone()],
            mask: None,
        };
        check(
            &engine,
            2,
            ImageRequest {
                edit: Some(edit),
                ..request(prompt, ImageFormat::Jpeg)
            },
        )
        .await;
    }
    let clear = request("a red circle", ImageFormat::Png);
    check(
        &engine,
        0,
        ImageRequest {
            background: Some(Background::Transparent),
            ..clear
        },
    )
    .await;
}

/// Makes a request's pictures, which start from so many as large as the output.
async fn check(engine: &EmbeddedImageEngine, inputs: usize, request: ImageRequest) {
    let told = format!("{} as {:?}", request.prompt, request.format);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let mut events = engine.start(request).await.unwrap().events;
    let mut files = 0;
    while let Some(event) = events.next().await {
        let (ImageEvent::Preview(file) | ImageEvent::Finished { picture: file, .. }) =
            event.unwrap()
        else {
            continue;
        };
        files += file.len();
    }
    drop(events);
    let peak = MEMORY.peak_usage() - before;
    // A file that grows is copied into a larger place, so for a moment it is there up to three
    // times.
    let budget = (inputs + 2) * CANVAS + 3 * files + SPARE;
    assert!(peak <= budget, "{told}: {peak} bytes of {budget}");
    assert!(peak >= CANVAS, "{told}: a canvas was made");
}

fn request(prompt: &str, format: ImageFormat) -> ImageRequest {
    ImageRequest {
        model: "model-image-2.5-flare".to_owned(),
        prompt: prompt.to_owned(),
        count: 1,
        size: Size::Exact(Pixels::new(SIDE, SIDE)),
        quality: Some(Quality::Low),
        background: None,
        format,
        compression: None,
        previews: 0,
        seed: Some(1),
        edit: None,
    }
}

fn photo() -> DynamicImage {
    let wave = |x: u32, y: u32| {
        ((f64::from(x) / 90.0).sin() * (f64::from(y) / 70.0).cos() * 90.0 + 128.0) as u8
    };
    let photo = RgbaImage::from_fn(SIDE, SIDE, |x, y| {
        Rgba([wave(x, y), (x / 8) as u8, (y / 8) as u8, 255])
    });
    DynamicImage::from(photo).into_rgb8().into()
}

fn mask() -> DynamicImage {
    RgbaImage::from_fn(SIDE, SIDE, |x, _| {
        Rgba([0, 0, 0, if x < SIDE / 2 { 0 } else { 255 }])
    })
    .into()
}

fn encoded(picture: DynamicImage, format: image::ImageFormat) -> Bytes {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner().into()
}
