//! Peak memory use of decoding, measured with a counting allocator.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

use std::io::Cursor;

use image::{DynamicImage, ImageFormat};
use jpeg_encoder::{ColorType, Encoder};
use peak_alloc::PeakAlloc;
use sluicegate_picture::{Head, Unreadable, decode, most_pixels};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const SIDE: u16 = 1024;
/// Allowance for tables and row buffers, in bytes.
const SPARE: usize = 4 << 20;

/// Decoding takes at most the estimated memory per pixel, also for hostile files.
///
/// This is the only test of its binary, because the allocator counts the complete process.
#[test]
fn l10_decoding_memory_stays_within_the_estimated_weight() {
    for (what, file) in valid_files() {
        let head = Head::read(&file).unwrap();
        let allowance = 1 << 40;
        let weight = allowance / most_pixels(&file, head.format, allowance);
        let (took, decoded) = measured(&file);
        assert!(decoded.is_ok(), "{what}: {decoded:?}");
        let most = (weight * head.pixels()) as usize + 2 * file.len() + SPARE;
        assert!(took <= most, "{what}: {took} bytes of {most}");
    }
    for (what, file) in hostile_files() {
        let (took, decoded) = measured(&file);
        assert!(
            took <= 5 * file.len() + SPARE,
            "{what} of {} bytes: {took} bytes",
            file.len()
        );
        assert!(
            decoded.is_ok() == what.starts_with("a profile"),
            "{what}: {decoded:?}"
        );
    }
}

/// Returns the peak memory of decoding a file, and the result.
fn measured(file: &[u8]) -> (usize, Result<(), Unreadable>) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let decoded = decode(file).map(drop);
    (MEMORY.peak_usage() - before, decoded)
}

fn valid_files() -> Vec<(&'static str, Vec<u8>)> {
    let side = u32::from(SIDE);
    let encoded = |picture: DynamicImage, format| {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    let jpeg = |colour, samples: usize, is_progressive| {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, 90);
        encoder.set_progressive(is_progressive);
        encoder
            .encode(
                &vec![128; usize::from(SIDE).pow(2) * samples],
                SIDE,
                SIDE,
                colour,
            )
            .unwrap();
        bytes
    };
    vec![
        (
            "a grey PNG",
            encoded(DynamicImage::new_luma8(side, side), ImageFormat::Png),
        ),
        (
            "a PNG",
            encoded(DynamicImage::new_rgba8(side, side), ImageFormat::Png),
        ),
        (
            "a PNG of 16 bits",
            encoded(DynamicImage::new_rgba16(side, side), ImageFormat::Png),
        ),
        ("a palette with opacities", palette(side)),
        (
            "a GIF",
            encoded(DynamicImage::new_rgba8(side, side), ImageFormat::Gif),
        ),
        (
            "a WebP",
            encoded(DynamicImage::new_rgb8(side, side), ImageFormat::WebP),
        ),
        (
            "a WebP with opacity",
            encoded(DynamicImage::new_rgba8(side, side), ImageFormat::WebP),
        ),
        ("a JPEG", jpeg(ColorType::Rgb, 3, false)),
        (
            "a JPEG on its side",
            on_its_side(&jpeg(ColorType::Rgb, 3, false)),
        ),
        (
            "a progressive JPEG on its side",
            on_its_side(&jpeg(ColorType::Rgb, 3, true)),
        ),
        ("a progressive JPEG", jpeg(ColorType::Rgb, 3, true)),
        ("a progressive grey JPEG", jpeg(ColorType::Luma, 1, true)),
        (
            "a progressive JPEG of four colours",
            jpeg(ColorType::Cmyk, 4, true),
        ),
    ]
}

/// Inserts Exif metadata with the orientation 6 into a JPEG.
fn on_its_side(file: &[u8]) -> Vec<u8> {
    let exif =
        b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    [&file[..2], exif, &file[2..]].concat()
}

fn palette(side: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side, side);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_palette(vec![0, 0, 0, 255, 255, 255]);
    encoder.set_trns(vec![0, 255]);
    encoder
        .write_header()
        .unwrap()
        .write_image_data(&vec![0; (side * side) as usize])
        .unwrap();
    bytes
}

/// Returns files that would take much memory if the sizes stated in them were trusted.
fn hostile_files() -> Vec<(&'static str, Vec<u8>)> {
    let mut profile = Vec::new();
    let mut info = png::Info::with_size(9, 5);
    info.icc_profile = Some(vec![0; 64 << 20].into());
    let writer = png::Encoder::with_info(&mut profile, info)
        .unwrap()
        .write_header();
    writer.unwrap().write_image_data(&[0; 45]).unwrap();
    vec![
        ("a profile that unpacks to megabytes", profile),
        ("a JPEG within a JPEG", two_faced_jpeg(16, 8192)),
        ("a WebP in a WebP", two_faced_webp(16, 16_383)),
    ]
}

/// Creates a JPEG in which the header parser sees an embedded image, and the decoder a marker
/// without content.
fn two_faced_jpeg(seen: u16, decoded: u16) -> Vec<u8> {
    let frame = |side: u16| {
        let side = side.to_be_bytes();
        [b"\xff\xc0\0\x0b\x08", &side[..], &side, b"\x01\x01\x11\0"].concat()
    };
    let table = |class: u8| [b"\xff\xc4\0\x14", &[class, 1][..], &[0; 16]].concat();
    let quantization = [&b"\xff\xdb\0\x43\0"[..], &[1; 64]].concat();
    let start = [
        &b"\xff\xd8\xff\xd8\0\x02"[..],
        &quantization,
        &table(0),
        &table(0x10),
        &frame(decoded),
    ]
    .concat();
    [
        &start,
        &b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\xff\xd9\0\x02"[..],
        &frame(seen),
        b"\xff\xd9",
    ]
    .concat()
}

/// Creates a WebP with a canvas of one size and a frame of another.
fn two_faced_webp(seen: u8, decoded: u16) -> Vec<u8> {
    let canvas = [
        b"WEBPVP8X\x0a\0\0\0\0\0\0\0",
        &[seen - 1, 0, 0, seen - 1, 0, 0][..],
    ]
    .concat();
    let side = decoded.to_le_bytes();
    let frame = [
        b"VP8 \0\x10\0\0\x10\0\0\x9d\x01\x2a",
        &side[..],
        &side,
        &[0; 4086],
    ]
    .concat();
    let rest = [canvas, frame].concat();
    [
        b"RIFF",
        &u32::try_from(rest.len()).unwrap().to_le_bytes()[..],
        &rest,
    ]
    .concat()
}
