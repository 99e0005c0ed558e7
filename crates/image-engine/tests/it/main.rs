//! The engine through its public interface: requests, and the pixels of their pictures.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod edits;
mod faults;
mod laws;
mod pictures;
mod places;
mod previews;

use std::io::Cursor;

use bytes::Bytes;
use engine::{
    EngineError, ImageEdit, ImageEngine, ImageEvent, ImageFormat, ImageRequest, ImageTraits,
    ImageUsage, Pixels, Quality, Size,
};
use futures_util::StreamExt;
use image::{DynamicImage, Rgba, RgbaImage};
use sluicegate_image_engine::{EmbeddedImageEngine, Options};

/// Everything that a request yields.
#[derive(Clone, Debug, PartialEq)]
struct Made {
    traits: ImageTraits,
    previews: Vec<Bytes>,
    pictures: Vec<Bytes>,
    usage: Vec<ImageUsage>,
}

impl Made {
    fn picture(&self, at: usize) -> RgbaImage {
        read(&self.pictures[at]).into_rgba8()
    }
}

/// A small picture of a red circle.
fn request(prompt: &str) -> ImageRequest {
    ImageRequest {
        model: "model-image-2.5-flare".to_owned(),
        prompt: prompt.to_owned(),
        count: 1,
        size: Size::Exact(Pixels::new(96, 80)),
        quality: Some(Quality::Low),
        background: None,
        format: ImageFormat::Png,
        compression: None,
        previews: 0,
        seed: Some(7),
        edit: None,
    }
}

/// An edit at the size of the first reference.
fn edit(prompt: &str, references: &[&RgbaImage], mask: Option<&RgbaImage>) -> ImageRequest {
    let references = references.iter().map(|picture| png(picture)).collect();
    let edit = Some(ImageEdit {
        references,
        mask: mask.map(png),
    });
    ImageRequest {
        size: Size::Auto,
        edit,
        ..request(prompt)
    }
}

async fn make_on(engine: &EmbeddedImageEngine, request: ImageRequest) -> Result<Made, EngineError> {
    let mut making = engine.start(request).await?;
    let mut made = Made {
        traits: making.traits,
        previews: vec![],
        pictures: vec![],
        usage: vec![],
    };
    while let Some(event) = making.events.next().await {
        match event? {
            ImageEvent::Preview(preview) => made.previews.push(preview),
            ImageEvent::Finished { picture, usage } => {
                made.pictures.push(picture);
                made.usage.push(usage);
            }
            other => panic!("{other:?}"),
        }
    }
    Ok(made)
}

async fn make(request: ImageRequest) -> Made {
    make_on(&EmbeddedImageEngine::new(Options::default()), request)
        .await
        .unwrap()
}

/// The one picture of an edit.
async fn edited(prompt: &str, references: &[&RgbaImage], mask: Option<&RgbaImage>) -> RgbaImage {
    make(edit(prompt, references, mask)).await.picture(0)
}

fn read(file: &[u8]) -> DynamicImage {
    image::load_from_memory(file).unwrap()
}

fn png(picture: &RgbaImage) -> Bytes {
    file(
        &DynamicImage::from(picture.clone()),
        image::ImageFormat::Png,
    )
}

fn file(picture: &DynamicImage, format: image::ImageFormat) -> Bytes {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner().into()
}

/// A square in one colour in the middle of another.
fn square(side: u32, colour: [u8; 3], behind: [u8; 3]) -> RgbaImage {
    let inside = |at: u32| (side / 4..side - side / 4).contains(&at);
    let pixel = |[red, green, blue]: [u8; 3]| Rgba([red, green, blue, 255]);
    RgbaImage::from_fn(side, side, |x, y| {
        pixel(if inside(x) && inside(y) {
            colour
        } else {
            behind
        })
    })
}

/// Transparent to the left of the middle, opaque to its right.
fn left_mask(width: u32, height: u32) -> RgbaImage {
    RgbaImage::from_fn(width, height, |x, _| {
        Rgba([0, 0, 0, if x < width / 2 { 0 } else { 255 }])
    })
}

/// The mean distance of two pictures' channels.
fn distance(one: &RgbaImage, other: &RgbaImage) -> f64 {
    assert_eq!(one.dimensions(), other.dimensions());
    let sum: u64 = one
        .as_raw()
        .iter()
        .zip(other.as_raw())
        .map(|(one, other)| u64::from(one.abs_diff(*other)))
        .sum();
    sum as f64 / one.as_raw().len() as f64
}

const RED: [u8; 3] = [210, 40, 40];
const BLUE: [u8; 3] = [40, 60, 210];
const GREY: [u8; 3] = [120, 120, 120];
const WHITE: [u8; 3] = [250, 250, 250];
