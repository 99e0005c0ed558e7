//! Token counts, which follow from the request alone and so can be computed beforehand. The README
//! lists them.

use engine::{ImageUsage, Pixels, Quality};

/// The tokens of the prompt and the input pictures, mask included. Each picture counts with the
/// size of its file in pixels.
pub(crate) fn input(prompt: &str, pictures: &[Pixels]) -> ImageUsage {
    let input_text = (prompt.len() as u64).div_ceil(4).max(1);
    let tiles = |size: &Pixels| {
        u64::from(size.width.div_ceil(TILE)) * u64::from(size.height.div_ceil(TILE))
    };
    let input_image = pictures
        .iter()
        .map(|size| tiles(size).clamp(1, MOST_TILES))
        .sum();
    ImageUsage {
        input_text,
        input_image,
        output_image: 0,
    }
}

/// The tokens of one picture and its previews.
pub(crate) fn output(size: Pixels, quality: Quality, previews: u32) -> u64 {
    let standard = match quality {
        Quality::Low => 272,
        Quality::Medium => 1_056,
        Quality::High => 4_160,
        Quality::XHigh => 6_240,
        Quality::Max => 8_320,
    };
    (standard * size.count()).div_ceil(STANDARD_PIXELS) + u64::from(previews) * PREVIEW
}

const TILE: u32 = 32;
const MOST_TILES: u64 = 1_536;
const STANDARD_PIXELS: u64 = 1024 * 1024;
const PREVIEW: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_counted_by_bytes_and_tiles() {
        let usage = input(
            "a red é",
            &[
                Pixels::new(64, 33),
                Pixels::new(8192, 4000),
                Pixels::new(1, 1),
            ],
        );
        assert_eq!(
            (usage.input_text, usage.input_image, usage.output_image),
            (2, 4 + 1_536 + 1, 0)
        );
        assert_eq!(input("", &[]).input_text, 1);
    }

    #[test]
    fn the_output_is_counted_by_quality_pixels_and_previews() {
        let square = Pixels::new(1024, 1024);
        assert_eq!(output(square, Quality::Low, 0), 272);
        assert_eq!(output(square, Quality::Medium, 2), 1_056 + 200);
        assert_eq!(output(Pixels::new(2048, 1024), Quality::High, 0), 8_320);
        assert_eq!(output(square, Quality::XHigh, 0), 6_240);
        assert_eq!(output(square, Quality::Max, 0), 8_320);
        assert_eq!(output(Pixels::new(16, 16), Quality::Low, 0), 1);
    }
}
