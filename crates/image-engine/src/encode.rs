//! Encodes pixels as the bytes of a file.

use std::io::{self, Write};

use bytes::Bytes;
use engine::{EngineError, ImageFormat, Quality};
use image::RgbaImage;
use jpeg_encoder::{ColorType, SamplingFactor};
use webp::WebPConfig;

/// The format of a file and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub(crate) format: ImageFormat,
    /// 0 to 100, of JPEG and WebP. Absent: [`JPEG_QUALITY`], [`WEBP_QUALITY`].
    pub(crate) compression: Option<u8>,
    /// Alpha is written. Without it the canvas is opaque already.
    pub(crate) alpha: bool,
    pub(crate) effort: Effort,
}

/// The time that a smaller file is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Quick,
    Usual,
    Thorough,
}

impl From<Quality> for Effort {
    fn from(quality: Quality) -> Self {
        if quality <= Quality::Medium { Self::Usual } else { Self::Thorough }
    }
}

/// Encodes a picture. No second canvas is made, except by libwebp.
pub(crate) fn encode(canvas: &RgbaImage, encoding: Encoding) -> Result<Bytes, EngineError> {
    match encoding.format {
        ImageFormat::Png => png(canvas, encoding).map_err(|why| failed("PNG", &why)),
        ImageFormat::Jpeg => jpeg(canvas, encoding),
        ImageFormat::Webp => webp(canvas, encoding),
    }
}

fn png(canvas: &RgbaImage, encoding: Encoding) -> io::Result<Bytes> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, canvas.width(), canvas.height());
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_color(if encoding.alpha { png::ColorType::Rgba } else { png::ColorType::Rgb });
    encoder.set_compression(match encoding.effort {
        Effort::Quick | Effort::Usual => png::Compression::Fast,
        Effort::Thorough => png::Compression::Balanced,
    });
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer_with_size(CHUNK)?;
    let mut opaque = Vec::with_capacity(canvas.width() as usize * 3);
    for row in canvas.as_raw().chunks_exact(canvas.width() as usize * 4) {
        if encoding.alpha {
            stream.write_all(row)?;
            continue;
        }
        opaque.clear();
        opaque.extend(row.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]));
        stream.write_all(&opaque)?;
    }
    stream.finish()?;
    writer.finish()?;
    Ok(file.into())
}

fn jpeg(canvas: &RgbaImage, encoding: Encoding) -> Result<Bytes, EngineError> {
    let quality = encoding.compression.unwrap_or(JPEG_QUALITY).clamp(1, 100);
    let side = |side: u32| u16::try_from(side).map_err(|why| failed("JPEG", &why));
    let (width, height) = (side(canvas.width())?, side(canvas.height())?);
    let mut file = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut file, quality);
    let fine = quality >= JPEG_FULL_COLOUR;
    encoder.set_sampling_factor(if fine { SamplingFactor::R_4_4_4 } else { SamplingFactor::R_4_2_0 });
    encoder.encode(canvas.as_raw(), width, height, ColorType::Rgba).map_err(|why| failed("JPEG", &why))?;
    Ok(file.into())
}

fn webp(canvas: &RgbaImage, encoding: Encoding) -> Result<Bytes, EngineError> {
    let mut config = WebPConfig::new().map_err(|()| failed("WebP", &"it has no settings"))?;
    let quality = encoding.compression.unwrap_or(WEBP_QUALITY).min(100);
    (config.lossless, config.quality) = if quality == 100 { (1, LOSSLESS_EFFORT) } else { (0, f32::from(quality)) };
    config.method = match encoding.effort {
        Effort::Quick => 0,
        Effort::Usual => 3,
        Effort::Thorough => 4,
    };
    let encoder = webp::Encoder::from_rgba(canvas.as_raw(), canvas.width(), canvas.height());
    let file = encoder.encode_advanced(&config).map_err(|why| failed("WebP", &format_args!("{why:?}")))?;
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
    use image::{GenericImageView, Rgba};

    use super::*;

    fn photo() -> RgbaImage {
        RgbaImage::from_fn(96, 64, |x, y| {
            let grain = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) >> 7;
            Rgba([(x * 2) as u8, (y * 3) as u8, (grain % 64) as u8 + 90, if x < 20 { 0 } else { 255 }])
        })
    }

    fn encoding(format: ImageFormat, compression: Option<u8>) -> Encoding {
        Encoding { format, compression, alpha: format != ImageFormat::Jpeg, effort: Effort::Usual }
    }

    #[test]
    fn every_format_is_read_by_others_with_its_size_and_alpha() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp] {
            let file = encode(&photo(), encoding(format, None)).unwrap();
            let read = image::load_from_memory(&file).unwrap();
            assert_eq!(read.dimensions(), (96, 64));
            assert_eq!(read.color().has_alpha(), format != ImageFormat::Jpeg, "{format:?}");
            if format != ImageFormat::Jpeg {
                assert_eq!((read.get_pixel(3, 3)[3], read.get_pixel(60, 9)[3]), (0, 255), "{format:?}");
            }
        }
    }

    #[test]
    fn lossless_forms_keep_every_visible_pixel() {
        for (format, effort) in [(ImageFormat::Png, Effort::Thorough), (ImageFormat::Webp, Effort::Quick)] {
            let file = encode(&photo(), Encoding { effort, ..encoding(format, Some(100)) }).unwrap();
            let read = image::load_from_memory(&file).unwrap().into_rgba8();
            assert!(read.enumerate_pixels().all(|(x, y, pixel)| x < 20 || pixel == photo().get_pixel(x, y)));
        }
    }

    #[test]
    fn better_kept_pictures_are_longer() {
        for format in [ImageFormat::Jpeg, ImageFormat::Webp] {
            let mut last = 0;
            for compression in [0, 30, 60, 89, 95] {
                let length = encode(&photo(), encoding(format, Some(compression))).unwrap().len();
                assert!(length > last, "{format:?} at {compression}: {length} after {last}");
                last = length;
            }
        }
    }
}
