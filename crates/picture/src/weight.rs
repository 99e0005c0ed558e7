//! Memory that decoding an image takes per pixel.

use memchr::memmem;

use crate::Format;
use crate::orientation::Orientation;

/// Returns how many pixels a file may have, so that decoding it takes at most `allowance` bytes of
/// memory, or [`MOST_BY_BYTE`] bytes per byte of the file if that is more. This keeps small
/// requests cheap.
///
/// ```
/// use sluicegate_picture::{Format, most_pixels};
///
/// let file = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x20\0\0\0\x0f\xf9\x08\x06\0\0\0";
/// assert_eq!(most_pixels(file, Format::Png, 8 << 20), 2 << 20);
/// ```
#[must_use]
pub fn most_pixels(bytes: &[u8], format: Format, allowance: u64) -> u64 {
    let by_length = (bytes.len() as u64).saturating_mul(MOST_BY_BYTE);
    allowance.max(by_length) / weight(bytes, format).max(RGBA)
}

/// Returns the maximum number of bytes that a decoder uses per pixel. Where an exact value would
/// require parsing the file, this is an upper bound.
fn weight(bytes: &[u8], format: Format) -> u64 {
    let (decoding, pixel) = match format {
        Format::Png => (png(bytes), png(bytes)),
        Format::Jpeg => (jpeg(bytes), COLOURS),
        Format::Webp => (webp(bytes), RGBA),
        // The canvas, and a frame that does not fill it.
        Format::Gif => (2 * RGBA, RGBA),
    };
    match Orientation::of(bytes, format).swaps_sides() {
        // The pixels, and the upright ones.
        true => decoding.max(2 * pixel),
        false => decoding,
    }
}

/// Bytes per pixel of a PNG: its samples, as decompressed (ISO/IEC 15948 §11.2.2, §11.3.2.1).
fn png(bytes: &[u8]) -> u64 {
    let [depth, colour] = [24, 25].map(|at| bytes.get(at).copied().unwrap_or(u8::MAX));
    let samples = match colour {
        0 => 1,
        2 | 3 => 3,
        4 => 2,
        _ => 4,
    };
    let alpha = u64::from(matches!(colour, 0 | 2 | 3) && contains(bytes, b"tRNS"));
    (samples + alpha) * if depth > 8 { 2 } else { 1 }
}

/// Bytes per pixel of a JPEG: three colours, plus a two-byte coefficient per component if the data
/// is spread over several scans (ITU-T T.81 §B.2).
fn jpeg(bytes: &[u8]) -> u64 {
    let mut scans = memmem::find_iter(bytes, START_OF_SCAN);
    let in_first = scans
        .next()
        .and_then(|at| bytes.get(at + 4))
        .copied()
        .unwrap_or(0);
    let components = |marker| {
        memmem::find_iter(bytes, marker)
            .filter_map(|at| bytes.get(at + 9).copied())
            .max()
    };
    let most = BASELINE
        .into_iter()
        .chain([PROGRESSIVE])
        .filter_map(components)
        .max()
        .unwrap_or(u8::MAX);
    if scans.next().is_none() && !contains(bytes, PROGRESSIVE) && in_first >= most {
        return COLOURS;
    }
    COLOURS + 2 * u64::from(most.clamp(1, 4))
}

/// Bytes per pixel of a WebP: RGB or RGBA, plus intermediate buffers: luma with half as much
/// chroma, a separate alpha image, and for animations a frame and the canvas.
fn webp(bytes: &[u8]) -> u64 {
    if contains(bytes, b"ANMF") {
        3 * RGBA + 2
    } else if contains(bytes, b"ALPH") {
        2 * RGBA + 3
    } else if contains(bytes, b"VP8L") {
        RGBA + COLOURS
    } else {
        COLOURS + 2
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memmem::find(bytes, part).is_some()
}

/// Bytes of memory allowed per byte of a file.
pub const MOST_BY_BYTE: u64 = 256;
/// The JPEG start-of-scan marker (ITU-T T.81 §B.2.3).
pub(crate) const START_OF_SCAN: &[u8] = &[0xff, 0xda];
/// The markers of frames with sequential scans.
const BASELINE: [&[u8]; 2] = [&[0xff, 0xc0], &[0xff, 0xc1]];
/// The marker of a frame with progressive scans.
const PROGRESSIVE: &[u8] = &[0xff, 0xc2];
/// Bytes per pixel of RGBA, the format in which pixels are processed.
const RGBA: u64 = 4;
const COLOURS: u64 = 3;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{DynamicImage, ImageFormat};

    use super::*;

    fn encoded(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.into().write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn a_png_weighs_its_samples() {
        let weight_of =
            |picture: DynamicImage| weight(&encoded(picture, ImageFormat::Png), Format::Png);
        assert_eq!(weight_of(image::GrayImage::new(9, 5).into()), 1);
        assert_eq!(weight_of(image::GrayAlphaImage::new(9, 5).into()), 2);
        assert_eq!(weight_of(image::RgbImage::new(9, 5).into()), 3);
        assert_eq!(weight_of(image::RgbaImage::new(9, 5).into()), 4);
        assert_eq!(weight_of(DynamicImage::new_rgba16(9, 5)), 8);
        let palette = |chunks: &[u8]| {
            [
                &b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x09\0\0\0\x05\x08\x03"[..],
                chunks,
            ]
            .concat()
        };
        assert_eq!(
            [palette(b""), palette(b"tRNS")].map(|bytes| weight(&bytes, Format::Png)),
            [3, 4]
        );
    }

    #[test]
    fn a_jpeg_weighs_its_coefficients_where_they_are_held() {
        let baseline = encoded(image::RgbImage::new(9, 5), ImageFormat::Jpeg);
        assert_eq!(weight(&baseline, Format::Jpeg), 3);
        let at = |marker: &[u8]| memmem::find(&baseline, marker).unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = baseline.clone();
            bytes[at] = byte;
            bytes
        };
        let (frame, scan) = (at(BASELINE[0]), at(START_OF_SCAN));
        for (what, bytes, expected) in [
            ("progressive", with(frame + 1, 0xc2), 9),
            ("one component in the first scan", with(scan + 4, 1), 9),
            (
                "four components, not all in the first scan",
                with(frame + 9, 4),
                11,
            ),
            ("several scans", [&baseline, START_OF_SCAN].concat(), 9),
            ("nothing that is known", b"\xff\xd8\xff".to_vec(), 11),
        ] {
            assert_eq!(weight(&bytes, Format::Jpeg), expected, "{what}");
        }
    }

    #[test]
    fn webp_weight_follows_its_chunk_type() {
        let file = |chunk: &[u8]| [b"RIFF\0\0\0\0WEBP", chunk].concat();
        for (chunk, expected) in [(b"VP8 ", 5), (b"VP8L", 7), (b"ALPH", 11), (b"ANMF", 14)] {
            assert_eq!(weight(&file(chunk), Format::Webp), expected);
        }
        assert_eq!(weight(b"GIF89a", Format::Gif), 8);
    }

    #[test]
    fn the_longer_a_file_the_more_pixels_it_may_have() {
        let file = encoded(image::RgbaImage::new(9, 5), ImageFormat::Png);
        let by_length = file.len() as u64 * 64;
        assert_eq!(most_pixels(&file, Format::Png, 0), by_length);
        assert_eq!(
            most_pixels(&file, Format::Png, by_length * 4 + 4),
            by_length + 1
        );
        let deep = encoded(DynamicImage::new_rgba16(9, 5), ImageFormat::Png);
        assert_eq!(
            most_pixels(&deep, Format::Png, 8000),
            1000.max(deep.len() as u64 * 32)
        );
        let grey = encoded(image::GrayImage::new(9, 5), ImageFormat::Png);
        assert_eq!(
            most_pixels(&grey, Format::Png, 1 << 20),
            1 << 18,
            "it is processed as RGBA"
        );
    }
}
