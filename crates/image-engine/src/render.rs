//! Renders a prompt as pixels.

use std::sync::{Arc, LazyLock};

use engine::{EngineError, ImageTraits, Pixels};
use image::{Rgba, RgbaImage, imageops};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use crate::prompt::Prompt;
use crate::scene;

/// The number of squares on the shorter side of a picture of coarse squares.
const COARSE: u32 = 64;

/// Draws a prompt, with straight alpha.
///
/// The same arguments give the same pixels. Another size of the same shape gives the same picture,
/// and a lower quality gives less of it.
pub(crate) fn paint(
    prompt: &Prompt,
    traits: ImageTraits,
    seed: u64,
) -> Result<RgbaImage, EngineError> {
    let svg = scene::compose(prompt, traits, seed);
    let size = traits.size;
    if prompt.style.pixels {
        let drawn = rasterise(&svg, coarse(size))?;
        return Ok(imageops::resize(
            &drawn,
            size.width,
            size.height,
            imageops::FilterType::Nearest,
        ));
    }
    rasterise(&svg, size)
}

fn rasterise(svg: &str, size: Pixels) -> Result<RgbaImage, EngineError> {
    let malformed =
        |why: usvg::Error| EngineError::Internal(format!("the scene cannot be rendered: {why}"));
    let Pixels { width, height } = size;
    let too_large = || {
        EngineError::Internal(format!(
            "a picture of {width}x{height} pixels cannot be made"
        ))
    };
    let tree = usvg::Tree::from_str(svg, &OPTIONS).map_err(malformed)?;
    let mut pixmap = Pixmap::new(width, height).ok_or_else(too_large)?;
    let natural = tree.size();
    let fit = Transform::from_scale(
        width as f32 / natural.width(),
        height as f32 / natural.height(),
    );
    resvg::render(&tree, fit, &mut pixmap.as_mut());
    let mut picture = RgbaImage::from_raw(width, height, pixmap.take()).ok_or_else(too_large)?;
    picture.pixels_mut().for_each(straighten);
    Ok(picture)
}

/// Options with which nothing outside of the text is read: no pictures, no fonts of the machine.
/// The fonts that are part of the program have no glyphs for Chinese, Japanese or Korean.
static OPTIONS: LazyLock<usvg::Options<'static>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    for font in [
        epaint_default_fonts::UBUNTU_LIGHT,
        epaint_default_fonts::HACK_REGULAR,
        epaint_default_fonts::NOTO_EMOJI_REGULAR,
        epaint_default_fonts::EMOJI_ICON,
    ] {
        fonts.load_font_source(fontdb::Source::Binary(Arc::new(font)));
    }
    usvg::Options {
        font_family: "Ubuntu".to_owned(),
        fontdb: Arc::new(fonts),
        image_href_resolver: usvg::ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|_, _| None),
        },
        ..usvg::Options::default()
    }
});

/// Divides the channels of a pixel by its alpha.
fn straighten(pixel: &mut Rgba<u8>) {
    let alpha = u32::from(pixel[3]);
    if alpha != 0 && alpha != 255 {
        for channel in &mut pixel.0[..3] {
            *channel = ((u32::from(*channel) * 255 + alpha / 2) / alpha).min(255) as u8;
        }
    }
}

/// The size of the same shape that has [`COARSE`] pixels on its shorter side.
fn coarse(size: Pixels) -> Pixels {
    let short = size.width.min(size.height).max(1);
    let side = |side: u32| {
        (u64::from(side) * u64::from(COARSE) / u64::from(short)).clamp(1, u64::from(side.max(1)))
            as u32
    };
    Pixels::new(side(size.width), side(size.height))
}

#[cfg(test)]
mod tests {
    use engine::{Background, ImageFormat, Quality};

    use super::*;

    fn traits(
        (width, height): (u32, u32),
        background: Background,
        quality: Quality,
    ) -> ImageTraits {
        ImageTraits {
            size: Pixels::new(width, height),
            quality,
            background,
            format: ImageFormat::Png,
        }
    }

    fn draw(
        prompt: &str,
        size: (u32, u32),
        background: Background,
        quality: Quality,
        seed: u64,
    ) -> RgbaImage {
        paint(
            &Prompt::read(prompt),
            traits(size, background, quality),
            seed,
        )
        .unwrap()
    }

    fn opaque(prompt: &str, seed: u64) -> RgbaImage {
        draw(
            prompt,
            (256, 256),
            Background::Opaque,
            Quality::Medium,
            seed,
        )
    }

    fn corners(picture: &RgbaImage) -> [[u8; 4]; 4] {
        let (right, bottom) = (picture.width() - 1, picture.height() - 1);
        [(0, 0), (right, 0), (0, bottom), (right, bottom)].map(|(x, y)| picture.get_pixel(x, y).0)
    }

    /// The distance of two pictures of one size, in channel steps a pixel.
    fn distance(a: &RgbaImage, b: &RgbaImage) -> f64 {
        let apart: u64 = a
            .iter()
            .zip(b.iter())
            .map(|(a, b)| u64::from(a.abs_diff(*b)))
            .sum();
        apart as f64 / f64::from(a.width() * a.height())
    }

    /// The number of connected regions of the pixels that are so, leaving aside specks.
    fn regions(picture: &RgbaImage, is: impl Fn([u8; 4]) -> bool) -> usize {
        let mut left: std::collections::HashSet<(u32, u32)> = picture
            .enumerate_pixels()
            .filter(|(_, _, pixel)| is(pixel.0))
            .map(|(x, y, _)| (x, y))
            .collect();
        let mut found = 0;
        while let Some(first) = left.iter().next().copied() {
            let (mut open, mut size) = (vec![first], 0);
            left.remove(&first);
            while let Some((x, y)) = open.pop() {
                size += 1;
                let beside = [
                    (x + 1, y),
                    (x.wrapping_sub(1), y),
                    (x, y + 1),
                    (x, y.wrapping_sub(1)),
                ];
                open.extend(beside.into_iter().filter(|at| left.remove(at)));
            }
            found += usize::from(size > 40);
        }
        found
    }

    const SHAPES: &str = "Two red circles and a blue square on a white background";

    #[test]
    fn requested_shapes_are_drawn_in_their_colours() {
        for seed in 0..4 {
            let picture = opaque(SHAPES, seed);
            assert_eq!(corners(&picture), [[255; 4]; 4]);
            assert_eq!(
                regions(&picture, |[r, g, b, _]| r > 140 && g < 110 && b < 110),
                2,
                "seed {seed}"
            );
            assert_eq!(
                regions(&picture, |[r, g, b, _]| b > 110 && r < 110 && g < 140),
                1,
                "seed {seed}"
            );
        }
    }

    #[test]
    fn things_are_on_the_side_that_the_prompt_names() {
        for (place, columns, rows) in [
            ("on the left", 0..110, 0..256),
            ("on the right", 146..256, 0..256),
            ("at the top", 0..256, 0..110),
            ("at the bottom", 0..256, 146..256),
            ("in the top right corner", 146..256, 0..110),
        ] {
            let picture = opaque(&format!("a red circle {place}"), 1);
            let red = |[r, g, b, _]: [u8; 4]| r > 140 && g < 110 && b < 110;
            let reds: Vec<_> = picture
                .enumerate_pixels()
                .filter(|(_, _, pixel)| red(pixel.0))
                .collect();
            assert!(reds.len() > 500, "{place}: {}", reds.len());
            assert!(
                reds.iter()
                    .all(|(x, y, _)| columns.contains(x) && rows.contains(y)),
                "{place}"
            );
        }
    }

    #[test]
    fn a_seed_is_one_picture_and_another_seed_another() {
        for prompt in [
            SHAPES,
            "a house by the sea",
            "nothing in particular",
            "A night sky with a moon and stars",
        ] {
            assert_eq!(opaque(prompt, 7), opaque(prompt, 7), "{prompt}");
            assert!(
                distance(&opaque(prompt, 7), &opaque(prompt, 8)) > 1.0,
                "{prompt}"
            );
        }
    }

    #[test]
    fn background_is_painted_only_if_opaque() {
        for prompt in [
            "a red heart",
            "a house by the sea at sunset",
            "mountains",
            "a feeling",
            "a cat on a white background",
        ] {
            let clear = draw(
                prompt,
                (128, 128),
                Background::Transparent,
                Quality::High,
                3,
            );
            assert!(
                corners(&clear).iter().all(|pixel| pixel[3] == 0),
                "{prompt}"
            );
            assert!(clear.pixels().any(|pixel| pixel[3] == 255), "{prompt}");
            let whole = draw(prompt, (128, 128), Background::Opaque, Quality::High, 3);
            assert!(whole.pixels().all(|pixel| pixel[3] == 255), "{prompt}");
        }
    }

    #[test]
    fn no_scene_has_holes() {
        for place in [
            "sky",
            "sea",
            "pond",
            "beach",
            "cliff",
            "mountains",
            "hills",
            "forest",
            "desert",
            "meadow",
            "snow",
            "city",
            "space",
            "room",
            "sunset",
        ] {
            for seed in 0..3 {
                let picture = draw(
                    &format!("a {place}"),
                    (96, 64),
                    Background::Opaque,
                    Quality::Low,
                    seed,
                );
                assert!(picture.pixels().all(|pixel| pixel[3] == 255), "{place}");
            }
        }
    }

    #[test]
    fn each_step_of_quality_is_seen() {
        let steps = [
            Quality::Low,
            Quality::Medium,
            Quality::High,
            Quality::XHigh,
            Quality::Max,
        ];
        for prompt in [
            "A house by the sea at sunset",
            "Three trees in a meadow",
            "A cat and a ball",
            SHAPES,
        ] {
            let drawn = steps.map(|detail| draw(prompt, (256, 256), Background::Opaque, detail, 1));
            assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]), "{prompt}");
        }
    }

    #[test]
    fn a_smaller_picture_and_a_lower_detail_are_the_same_picture() {
        for prompt in [
            "a house by the sea at sunset with mountains",
            "three cats and a ball",
            "a city street in the rain",
        ] {
            let full = draw(prompt, (256, 192), Background::Opaque, Quality::High, 5);
            let half = draw(prompt, (128, 96), Background::Opaque, Quality::High, 5);
            let shrunk = imageops::thumbnail(&full, 128, 96);
            assert!(
                distance(&half, &shrunk) < 14.0,
                "{prompt}: {}",
                distance(&half, &shrunk)
            );
            let early = draw(prompt, (256, 192), Background::Opaque, Quality::Low, 5);
            assert!(
                distance(&early, &full)
                    < distance(
                        &draw(prompt, (256, 192), Background::Opaque, Quality::High, 6),
                        &full
                    )
            );
        }
    }

    #[test]
    fn finer_pictures_have_more_in_them() {
        let prompt = Prompt::read("a house in a meadow by a lake with a forest in a city");
        let length = |quality| {
            scene::compose(&prompt, traits((512, 512), Background::Opaque, quality), 1).len()
        };
        let lengths = [
            Quality::Low,
            Quality::Medium,
            Quality::High,
            Quality::XHigh,
            Quality::Max,
        ]
        .map(length);
        assert!(
            lengths.is_sorted() && lengths[0] < lengths[2] && lengths[4] < 200_000,
            "{lengths:?}"
        );
    }

    #[test]
    fn words_are_seen() {
        let with = opaque("a sign that says \"HELLO\"", 1);
        let without = opaque("a sign that says \"\"", 1);
        assert!(distance(&with, &without) > 2.0);
    }

    #[test]
    fn hostile_prompts_are_only_prompts() {
        let emoji = "🙂🚀".repeat(16_000);
        let quoted = format!("a sign \"{}\"", "W".repeat(31_000));
        for prompt in [
            emoji.as_str(),
            &quoted,
            "",
            "\u{0}\u{1}\u{ffff}",
            "\"",
            "'''''\"\"\"“„«",
            "\"</text><image href='file:///etc/passwd'/>\"",
            "'&lt;&#0;<![CDATA['",
            "99999999999999999999 circles",
            "\"日本語のテキスト\"",
            "\"\u{202e}abc\"",
            "a circle above a circle above a circle above a circle on a cat in a cup",
        ] {
            let picture = opaque(prompt, 1);
            assert_eq!(picture.get_pixel(0, 0)[3], 255);
        }
    }

    #[test]
    fn every_size_can_be_drawn() {
        let prompts = [
            "a house by the sea at sunset with mountains",
            "nine circles \"WORD\"",
            "a forest in fog",
            "a moon in space",
        ];
        for size in [
            (16, 16),
            (1, 1),
            (3000, 16),
            (16, 3000),
            (8192, 100),
            (100, 8192),
            (17, 400),
        ] {
            for prompt in prompts {
                let picture = draw(prompt, size, Background::Opaque, Quality::Max, 2);
                assert_eq!(picture.dimensions(), size);
            }
        }
        let none = paint(
            &Prompt::default(),
            traits((0, 5), Background::Opaque, Quality::Low),
            0,
        );
        assert!(matches!(none, Err(EngineError::Internal(_))));
    }
}
