//! Encodes pixels as the bytes of a file.

use std::io::{self, Write};

use bytes::Bytes;
use engine::{Background, EngineError, ImageFormat, ImageTraits, Quality};
use image::RgbaImage;
use jpeg_encoder::{ColorType, SamplingFactor};
use webp::WebPConfig;

/// Encodes a picture; a preview is worth less time. No second canvas is made, except by libwebp.
/// Without alpha in the file the canvas is opaque already.
pub(crate) fn encode(
    canvas: &RgbaImage,
    traits: ImageTraits,
    compression: Option<u8>,
    preview: bool,
) -> Result<Bytes, EngineError> {
    match traits.format {
        ImageFormat::Png => png(canvas, traits, preview).map_err(|why| failed("PNG", &why)),
        ImageFormat::Jpeg => jpeg(canvas, compression.unwrap_or(JPEG_QUALITY)),
        ImageFormat::Webp => webp(
            canvas,
            traits.quality,
            compression.unwrap_or(WEBP_QUALITY),
            preview,
        ),
    }
}

fn png(canvas: &RgbaImage, traits: ImageTraits, preview: bool) -> io::Result<Bytes> {
    let alpha = traits.background == Background::Transparent;
    let thorough = !preview && traits.quality > Quality::Medium;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, canvas.width(), canvas.height());
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_color(if alpha {
        png::ColorType::Rgba
    } else {
        png::ColorType::Rgb
    });
    encoder.set_compression(if thorough {
        png::Compression::Balanced
    } else {
        png::Compression::Fast
    });
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer_with_size(CHUNK)?;
    let mut opaque = Vec::with_capacity(canvas.width() as usize * 3);
    for row in canvas.as_raw().chunks_exact(canvas.width() as usize * 4) {
        if alpha {
            stream.write_all(row)?;
            continue;
        }
        opaque.clear();
        opaque.extend(
            row.chunks_exact(4)
                .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]),
        );
        stream.write_all(&opaque)?;
    }
    stream.finish()?;
    writer.finish()?;
    Ok(file.into())
}

fn jpeg(canvas: &RgbaImage, quality: u8) -> Result<Bytes, EngineError> {
    let side = |side: u32| u16::try_from(side).map_err(|why| failed("JPEG", &why));
    let width = side(canvas.width())?;
    let height = side(canvas.height())?;
    let mut file = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut file, quality.clamp(1, 100));
    let fine = quality >= JPEG_FULL_COLOUR;
    encoder.set_sampling_factor(if fine {
        SamplingFactor::R_4_4_4
    } else {
        SamplingFactor::R_4_2_0
    });
    encoder
        .encode(canvas.as_raw(), width, height, ColorType::Rgba)
        .map_err(|why| failed("JPEG", &why))?;
    Ok(file.into())
}

fn webp(
    canvas: &RgbaImage,
    detail: Quality,
    quality: u8,
    preview: bool,
) -> Result<Bytes, EngineError> {
    let mut config = WebPConfig::new().map_err(|()| failed("WebP", &"it has no settings"))?;
    (config.lossless, config.quality) = if quality >= 100 {
        (1, LOSSLESS_EFFORT)
    } else {
        (0, f32::from(quality))
    };
    config.method = match detail {
        _ if preview => 0,
        Quality::Low | Quality::Medium => 3,
        Quality::High | Quality::XHigh | Quality::Max => 4,
    };
    let encoder = webp::Encoder::from_rgba(canvas.as_raw(), canvas.width(), canvas.height());
    let file = encoder
        .encode_advanced(&config)
        .map_err(|why| failed("WebP", &format_args!("{why:?}")))?;
    Ok(Bytes::copy_from_slice(&file))
}

fn failed(format: &str, why: &dyn std::fmt::Display) -> EngineError {
    EngineError::Internal(format!("the {format} encoder failed: {why}"))
}

/// The approximate length of one IDAT chunk in bytes.
const CHUNK: usize = 64 * 1024;
const JPEG_QUALITY: u8 = 90;
/// From this quality on colours have as many samples as light.
const JPEG_FULL_COLOUR: u8 = 90;
const WEBP_QUALITY: u8 = 80;
/// Of a lossless WebP its quality is the time spent.
const LOSSLESS_EFFORT: f32 = 50.0;

#[cfg(test)]
mod tests {
    use engine::Pixels;
    use image::{GenericImageView, Rgba};

    use super::*;

    fn photo() -> RgbaImage {
        RgbaImage::from_fn(96, 64, |x, y| {
            let grain = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) >> 7;
            Rgba([
                (x * 2) as u8,
                (y * 3) as u8,
                (grain % 64) as u8 + 90,
                if x < 20 { 0 } else { 255 },
            ])
        })
    }

    fn traits(format: ImageFormat, quality: Quality) -> ImageTraits {
        let background = if format == ImageFormat::Jpeg {
            Background::Opaque
        } else {
            Background::Transparent
        };
        ImageTraits {
            size: Pixels::new(96, 64),
            quality,
            background,
            format,
        }
    }

    #[test]
    fn every_format_is_read_by_others_with_its_size_and_alpha() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp] {
            let file = encode(&photo(), traits(format, Quality::Low), None, false).unwrap();
            let read = image::load_from_memory(&file).unwrap();
            assert_eq!(read.dimensions(), (96, 64));
            assert_eq!(
                read.color().has_alpha(),
                format != ImageFormat::Jpeg,
                "{format:?}"
            );
            if format != ImageFormat::Jpeg {
                assert_eq!(
                    (read.get_pixel(3, 3)[3], read.get_pixel(60, 9)[3]),
                    (0, 255),
                    "{format:?}"
                );
            }
        }
    }

    #[test]
    fn lossless_forms_keep_every_visible_pixel() {
        for (format, preview) in [(ImageFormat::Png, false), (ImageFormat::Webp, true)] {
            let file = encode(&photo(), traits(format, Quality::High), Some(100), preview).unwrap();
            let read = image::load_from_memory(&file).unwrap().into_rgba8();
            assert!(
                read.enumerate_pixels()
                    .all(|(x, y, pixel)| x < 20 || pixel == photo().get_pixel(x, y))
            );
        }
    }

    #[test]
    fn better_kept_pictures_are_longer() {
        for format in [ImageFormat::Jpeg, ImageFormat::Webp] {
            let mut last = 0;
            for compression in [0, 30, 60, 89, 95] {
                let file = encode(
                    &photo(),
                    traits(format, Quality::Low),
                    Some(compression),
                    false,
                )
                .unwrap();
                let length = file.len();
                assert!(
                    length > last,
                    "{format:?} at {compression}: {length} after {last}"
                );
                last = length;
            }
        }
    }
}
