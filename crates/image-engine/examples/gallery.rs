//! Draws the gallery: `cargo run --release -p sluicegate-image-engine --example gallery --
//! crates/image-engine/gallery`.
//!
//! With `--all` before the folder it draws each thing and each place instead, to compare before and
//! after a change of the drawings. Seeds are fixed, so a picture changes only with its drawing.

use std::error::Error;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use engine::{
    ImageEdit, ImageEngine, ImageEvent, ImageFormat, ImageRequest, Pixels, Quality, Size,
};
use futures_util::StreamExt;
use image::{DynamicImage, Rgb, RgbImage, Rgba, RgbaImage, imageops};
use sluicegate_image_engine::{EmbeddedImageEngine, Options};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let all = arguments.next_if(|argument| argument == "--all").is_some();
    let folder = arguments
        .next()
        .map(PathBuf::from)
        .ok_or("name the folder to write to")?;
    std::fs::create_dir_all(&folder)?;
    let engine = EmbeddedImageEngine::new(Options::default());
    if all {
        draw_all(&engine, &folder).await
    } else {
        draw_gallery(&engine, &folder).await
    }
}

/// Draws every drawing that a prompt can name, by the first of its nouns.
async fn draw_all(engine: &EmbeddedImageEngine, folder: &Path) -> Result<()> {
    for assets in ["things", "scenery"] {
        for file in std::fs::read_dir(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("assets")
                .join(assets),
        )? {
            let file = file?.path();
            let drawing = std::fs::read_to_string(&file)?;
            let title = drawing
                .split_once("<title>")
                .and_then(|(_, title)| title.split([',', '<']).next());
            if let (Some(noun), Some(name)) = (title, file.file_stem()) {
                let picture = draw(engine, request(&format!("a {noun}"), None)).await?;
                std::fs::write(folder.join(name).with_extension("webp"), picture)?;
            }
        }
    }
    Ok(())
}

/// Draws the pictures of the gallery, and writes the page that shows them.
async fn draw_gallery(engine: &EmbeddedImageEngine, folder: &Path) -> Result<()> {
    let (mut page, mut sheet) = (HEAD.to_owned(), Sheet::new());
    for (i, prompt) in PROMPTS.iter().enumerate() {
        let picture = draw(engine, request(prompt, None)).await?;
        page += &keep(folder, &format!("{:02}.webp", i + 1), prompt, &picture)?;
        sheet.add(i, &picture)?;
    }
    page += EDITS_HEAD;
    let mut picture = draw(engine, request(START, None)).await?;
    page += &keep(folder, "edit-00.webp", START, &picture)?;
    for (i, prompt) in EDITS.iter().enumerate() {
        picture = draw(engine, request(prompt, Some(picture))).await?;
        page += &keep(folder, &format!("edit-{:02}.webp", i + 1), prompt, &picture)?;
    }
    let whole = webp::Encoder::from_rgb(&sheet.0, sheet.0.width(), sheet.0.height()).encode(75.0);
    std::fs::write(folder.join("page.webp"), &*whole)?;
    Ok(std::fs::write(folder.join("README.md"), page)?)
}

fn request(prompt: &str, start: Option<Bytes>) -> ImageRequest {
    ImageRequest {
        model: String::new(),
        prompt: prompt.to_owned(),
        count: 1,
        size: Size::Exact(Pixels::new(SIDE, SIDE)),
        quality: Some(Quality::High),
        background: None,
        format: ImageFormat::Webp,
        compression: Some(80),
        previews: 0,
        seed: Some(1),
        edit: start.map(|picture| ImageEdit {
            references: vec![picture],
            mask: None,
        }),
    }
}

async fn draw(engine: &EmbeddedImageEngine, request: ImageRequest) -> Result<Bytes> {
    let mut events = engine.start(request).await?.events;
    while let Some(event) = events.next().await {
        if let ImageEvent::Finished { picture, .. } = event? {
            return Ok(picture);
        }
    }
    Err("the engine returned no picture".into())
}

/// Writes a picture, and returns its line of the page.
fn keep(folder: &Path, name: &str, prompt: &str, picture: &[u8]) -> std::io::Result<String> {
    std::fs::write(folder.join(name), picture)?;
    Ok(format!(
        "| {prompt} | ![{}]({name}) |\n",
        prompt.replace('"', "")
    ))
}

/// All pictures in one, at a small size.
struct Sheet(RgbImage);

impl Sheet {
    fn new() -> Self {
        let rows = PROMPTS.len().div_ceil(COLUMNS) as u32;
        Self(RgbImage::from_pixel(
            COLUMNS as u32 * CELL,
            rows * CELL,
            Rgb([255; 3]),
        ))
    }

    fn add(&mut self, index: usize, picture: &[u8]) -> Result<()> {
        let mut ground = RgbaImage::from_pixel(SIDE, SIDE, Rgba([255; 4]));
        imageops::overlay(&mut ground, &image::load_from_memory(picture)?, 0, 0);
        let small =
            DynamicImage::from(ground).resize_exact(CELL, CELL, imageops::FilterType::Lanczos3);
        let (column, row) = ((index % COLUMNS) as u32, (index / COLUMNS) as u32);
        imageops::replace(
            &mut self.0,
            &small.into_rgb8(),
            i64::from(column * CELL),
            i64::from(row * CELL),
        );
        Ok(())
    }
}

const PROMPTS: [&str; 18] = [
    "A paper boat on a pond",
    "A house by the sea at sunset with mountains",
    "Two red circles and a blue square on a white background",
    "A night sky with a moon and stars over a forest",
    "A cat sitting next to a yellow ball",
    "Three green trees on a hill with the word \"HELLO\" above",
    "A red heart sticker with a transparent background",
    "A poster that says 'OPEN DAY' in dark blue",
    "Five balloons of different colours in a blue sky",
    "A rocket flying to the moon, flat style",
    "A cup of coffee on a wooden table",
    "A small snowman in a snowy field",
    "A lighthouse on a cliff in a storm",
    "A robot and a pink flower",
    "A train on a bridge over a river",
    "A birthday cake and a present",
    "A girl in a red dress with a balloon in the city",
    "A planet with a ring in space",
];
const START: &str = "A red car on a road";
const EDITS: [&str; 4] = [
    "Make the car blue",
    "Add a yellow sun at the top left",
    "Make it night",
    "Turn it black and white",
];

const HEAD: &str = "# Pictures that the image engine drew

Each is drawn from its prompt, 384 pixels a side, quality `high`, seed 1. The example `gallery` makes this page.

| prompt | picture |
|---|---|
";
const EDITS_HEAD: &str = "
## Edits

Each starts from the picture above it.

| prompt | picture |
|---|---|
";
const SIDE: u32 = 384;
const COLUMNS: usize = 6;
/// Pixels a side of a picture on the sheet.
const CELL: u32 = 192;
