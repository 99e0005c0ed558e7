//! Pictures of one colour: valid files of any size in pixels that have few bytes.

use jpeg_encoder::{ColorType, Encoder};

/// Maximum width and height.
pub(super) const MAX_SIDE: u32 = 3_840;

/// Encodes a picture of one colour (red, green, blue, alpha) in this format: `jpeg`, `webp`, or
/// else PNG.
pub(super) fn plain(format: &str, (width, height): (u32, u32), colour: [u8; 4]) -> Vec<u8> {
    let encoded = match format {
        "jpeg" => jpeg(width, height, colour),
        "webp" => Some(webp(width, height, colour)),
        _ => png(width, height, colour),
    };
    // Writing to memory does not fail.
    encoded.unwrap_or_default()
}

/// Encodes a PNG with one bit per pixel and a palette of one colour.
fn png(width: u32, height: u32, [red, green, blue, alpha]: [u8; 4]) -> Option<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::One);
    encoder.set_palette(vec![red, green, blue]);
    if alpha < u8::MAX {
        encoder.set_trns(vec![alpha]);
    }
    let row = width.div_ceil(8) as usize;
    let mut writer = encoder.write_header().ok()?;
    writer
        .write_image_data(&vec![0; row * height as usize])
        .ok()?;
    writer.finish().ok()?;
    Some(file)
}

fn jpeg(width: u32, height: u32, [red, green, blue, _]: [u8; 4]) -> Option<Vec<u8>> {
    let mut file = Vec::new();
    let grey = ((u32::from(red) + u32::from(green) + u32::from(blue)) / 3) as u8;
    let pixels = vec![grey; (width * height) as usize];
    let encoder = Encoder::new(&mut file, 50);
    encoder
        .encode(
            &pixels,
            width.try_into().ok()?,
            height.try_into().ok()?,
            ColorType::Luma,
        )
        .ok()?;
    Some(file)
}

/// Encodes a lossless WebP whose prefix codes have one symbol each, so that the pixels take no bits
/// ([WebP Lossless
/// Bitstream](https://developers.google.com/speed/webp/docs/webp_lossless_bitstream_specification)).
fn webp(width: u32, height: u32, [red, green, blue, alpha]: [u8; 4]) -> Vec<u8> {
    // Fields begin at the least significant bit.
    let mut fields = 0_u128;
    let mut length = 0_u32;
    let mut push = |value: u32, bits: u32| {
        fields |= u128::from(value) << length;
        length += bits;
    };
    // The signature.
    push(0x2F, 8);
    push(width - 1, 14);
    push(height - 1, 14);
    push(u32::from(alpha < u8::MAX), 1);
    // Version; no transform, no colour cache, no meta prefix codes.
    push(0, 3 + 1 + 1 + 1);
    for symbol in [green, red, blue, alpha] {
        // A simple code with one symbol of eight bits.
        push(0b1_0_1, 3);
        push(symbol.into(), 8);
    }
    // The distance code: one symbol of one bit.
    push(0b0_0_1, 3);
    push(0, 1);
    let chunk = &fields.to_le_bytes()[..length.div_ceil(8) as usize];
    // The file has 24 bytes after its own size; the last 12 bytes are the chunk.
    [b"RIFF\x18\0\0\0WEBPVP8L\x0C\0\0\0", chunk].concat()
}
