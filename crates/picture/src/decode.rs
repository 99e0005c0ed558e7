//! Decoding of images into pixels, with limits on memory and work.

use std::io::Cursor;
use std::panic::{UnwindSafe, catch_unwind};

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use crate::head::MAX_SCANS;
use crate::orientation::Orientation;
use crate::weight::START_OF_SCAN;
use crate::{Format, Head, MAX_SIDE, Unreadable};

/// Decodes an image, and turns it upright; of an animation, the first frame.
///
/// This is blocking work. It uses as much memory as the pixels take at the bit depth of the file.
///
/// # Errors
/// Returns an error if the bytes are not an image, are damaged, or exceed the pixel limits, and if
/// the decoder finds a different size than [`Head::read`].
pub fn decode(bytes: &[u8]) -> Result<DynamicImage, Unreadable> {
    let head = Head::read(bytes)?;
    if head.format == Format::Jpeg && scans(bytes) > MAX_SCANS {
        return Err(Unreadable::Scans);
    }
    if head.format == Format::Webp && frames(bytes).any(|pixels| pixels > head.pixels()) {
        return Err(Unreadable::Damaged);
    }
    catch_panic(|| decode_pixels(bytes, head))
}

/// Runs a decoder and treats a panic as a damaged image, since decoders have been known to panic.
fn catch_panic<T>(
    work: impl FnOnce() -> Result<T, Unreadable> + UnwindSafe,
) -> Result<T, Unreadable> {
    catch_unwind(work).map_err(|_| Unreadable::Damaged)?
}

fn decode_pixels(bytes: &[u8], head: Head) -> Result<DynamicImage, Unreadable> {
    let orientation = Orientation::of(bytes, head.format);
    let stored = match orientation.swaps_sides() {
        true => (head.height, head.width),
        false => (head.width, head.height),
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), decoder(head.format));
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    // Metadata may be compressed, but rarely is.
    limits.max_alloc = Some(MAX_METADATA + 4 * bytes.len() as u64);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(|_| Unreadable::Damaged)?;
    // The decoder must find the size that was checked, not the size of another image within the
    // same bytes.
    if decoder.dimensions() != stored {
        return Err(Unreadable::Damaged);
    }
    // A frame of an animation must not be larger than the image.
    limits.max_alloc = Some(decoder.total_bytes());
    let limited = decoder.set_limits(limits);
    let mut picture = limited
        .and_then(|()| DynamicImage::from_decoder(decoder))
        .map_err(|_| Unreadable::Damaged)?;
    if let Some(orientation) = image::metadata::Orientation::from_exif(orientation.0) {
        picture.apply_orientation(orientation);
    }
    Ok(picture)
}

fn decoder(format: Format) -> ImageFormat {
    match format {
        Format::Png => ImageFormat::Png,
        Format::Jpeg => ImageFormat::Jpeg,
        Format::Webp => ImageFormat::WebP,
        Format::Gif => ImageFormat::Gif,
    }
}

/// Counts the scans of a JPEG. Its data never contains this marker otherwise; a thumbnail may add
/// one.
fn scans(bytes: &[u8]) -> usize {
    memchr::memmem::find_iter(bytes, START_OF_SCAN).count()
}

/// Returns the number of pixels of each lossy frame of a WebP. The decoder allocates a frame before
/// comparing it with the canvas size.
fn frames(bytes: &[u8]) -> impl Iterator<Item = u64> {
    memchr::memmem::find_iter(bytes, b"VP8 ").filter_map(|at| {
        let side = |low: u8, high: u8| u64::from(u16::from_le_bytes([low, high]) & 0x3fff);
        match bytes.get(at + 8..at + 18)? {
            [_, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1] => Some(side(*w0, *w1) * side(*h0, *h1)),
            _ => None,
        }
    })
}

/// Memory allowed for metadata such as a colour profile, in bytes, in addition to a multiple of the
/// file size.
const MAX_METADATA: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use image::{Rgba, RgbaImage};

    use super::*;

    fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let picture = DynamicImage::from(RgbaImage::from_pixel(
            width,
            height,
            Rgba([200, 30, 30, 255]),
        ));
        let mut bytes = Cursor::new(Vec::new());
        let written = match format {
            ImageFormat::Jpeg => picture.into_rgb8().write_to(&mut bytes, format),
            _ => picture.write_to(&mut bytes, format),
        };
        written.unwrap();
        bytes.into_inner()
    }

    #[test]
    fn header_and_pixels_agree_in_every_format() {
        for format in [
            ImageFormat::Png,
            ImageFormat::Jpeg,
            ImageFormat::WebP,
            ImageFormat::Gif,
        ] {
            let bytes = encoded(9, 5, format);
            let (head, picture) = (Head::read(&bytes).unwrap(), decode(&bytes).unwrap());
            assert_eq!(
                (head.width, head.height),
                (picture.width(), picture.height()),
                "{format:?}"
            );
            assert_eq!(decoder(head.format), format);
        }
    }

    /// Inserts Exif metadata with an orientation into a JPEG, a PNG or a WebP.
    fn with_orientation(file: &[u8], format: ImageFormat, value: u8) -> Vec<u8> {
        let entry = [0x12, 1, 3, 0, 1, 0, 0, 0, value, 0, 0, 0];
        let exif = [&b"II*\0\x08\0\0\0\x01\0"[..], &entry, &[0; 4]].concat();
        match format {
            ImageFormat::Jpeg => {
                let segment = [&b"\xff\xe1\0\x22Exif\0\0"[..], &exif].concat();
                [&file[..2], &segment, &file[2..]].concat()
            }
            ImageFormat::Png => [&file[..33], &chunk(b"eXIf", &exif), &file[33..]].concat(),
            _ => [file, b"EXIF\x1a\0\0\0", &exif].concat(),
        }
    }

    /// Each orientation as Exif defines it: a row of red, green, blue above one of black is seen from
    /// its corner.
    #[test]
    fn a_photograph_is_upright_in_each_orientation() {
        const ROWS: [&str; 2] = ["rgb", "kkk"];
        for (value, upright) in [
            (1, &["rgb", "kkk"][..]),
            (2, &["bgr", "kkk"]),
            (3, &["kkk", "bgr"]),
            (4, &["kkk", "rgb"]),
            (5, &["rk", "gk", "bk"]),
            (6, &["kr", "kg", "kb"]),
            (7, &["kb", "kg", "kr"]),
            (8, &["bk", "gk", "rk"]),
        ] {
            let colour = |letter: u8| match letter {
                b'r' => Rgba([255, 0, 0, 255]),
                b'g' => Rgba([0, 255, 0, 255]),
                b'b' => Rgba([0, 0, 255, 255]),
                _ => Rgba([0, 0, 0, 255]),
            };
            // Blocks, so that the compression of a JPEG mixes no colours.
            let stored = RgbaImage::from_fn(3 * 16, 2 * 16, |x, y| {
                colour(ROWS[y as usize / 16].as_bytes()[x as usize / 16])
            });
            for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
                let mut file = Cursor::new(Vec::new());
                let picture = DynamicImage::from(stored.clone());
                match format {
                    ImageFormat::Jpeg => picture.into_rgb8().write_to(&mut file, format),
                    _ => picture.write_to(&mut file, format),
                }
                .unwrap();
                let file = with_orientation(&file.into_inner(), format, value);
                let (head, seen) = (Head::read(&file).unwrap(), decode(&file).unwrap());
                let sides = (upright[0].len() as u32 * 16, upright.len() as u32 * 16);
                assert_eq!((head.width, head.height), sides, "{format:?} {value}");
                assert_eq!((seen.width(), seen.height()), sides, "{format:?} {value}");
                let seen = seen.into_rgba8();
                for (y, row) in upright.iter().enumerate() {
                    for (x, letter) in row.bytes().enumerate() {
                        let found = seen.get_pixel(x as u32 * 16 + 8, y as u32 * 16 + 8).0;
                        let mut channels = colour(letter).0.into_iter().zip(found);
                        let is_near = channels.all(|(a, b)| a.abs_diff(b) < 40);
                        assert!(is_near, "{format:?} {value}: {x} {y} is {found:?}");
                    }
                }
            }
        }
    }

    /// An image whose header claims too many pixels is rejected before any pixel is decoded.
    #[test]
    fn i01_oversized_image_is_rejected_from_its_header() {
        let mut bytes = encoded(2, 2, ImageFormat::Png);
        bytes[16..24].copy_from_slice(&[0, 0, 0xc3, 0x50, 0, 0, 0xc3, 0x50]);
        let refused = decode(&bytes[..33]).unwrap_err();
        assert_eq!(
            refused,
            Unreadable::TooLarge {
                width: 50_000,
                height: 50_000
            }
        );
        assert_eq!(
            refused.to_string(),
            "it is 50000x50000; at most 8192 a side and 33500000 pixels in all are taken"
        );
        // Each side is within its limit, but 33,505,280 pixels are too many; with one row less it
        // is accepted.
        bytes[16..24].copy_from_slice(&[0, 0, 0x20, 0, 0, 0, 0x0f, 0xfa]);
        assert_eq!(
            decode(&bytes[..33]).unwrap_err(),
            Unreadable::TooLarge {
                width: 8192,
                height: 4090
            }
        );
        bytes[16..24].copy_from_slice(&[0, 0, 0x20, 0, 0, 0, 0x0f, 0xf9]);
        assert_eq!(decode(&bytes[..33]).unwrap_err(), Unreadable::Damaged);
    }

    /// A panic in a decoder is caught and reported as a damaged image.
    #[test]
    fn i03_a_decoder_that_panics_is_a_damaged_picture() {
        assert_eq!(
            catch_panic::<()>(|| panic!("as a decoder would")),
            Err(Unreadable::Damaged)
        );
        // Found by fuzzing: a second frame with different sampling makes zune-jpeg 0.5.15 panic.
        assert_eq!(
            decode(include_bytes!("../tests/data/decoder-panics.jpg")).unwrap_err(),
            Unreadable::Damaged
        );
    }

    #[test]
    fn truncated_files_and_non_images_are_rejected() {
        assert_eq!(
            decode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").unwrap_err(),
            Unreadable::Kind
        );
        for format in [ImageFormat::Png, ImageFormat::WebP] {
            let whole = encoded(50, 50, format);
            for cut in 0..whole.len() - 12 {
                assert!(decode(&whole[..cut]).is_err(), "{format:?} cut at {cut}");
            }
        }
    }

    /// A JPEG with too many scans is rejected.
    #[test]
    fn i02_a_jpeg_of_endless_scans_is_refused() {
        let mut bytes = encoded(8, 8, ImageFormat::Jpeg);
        bytes.extend(START_OF_SCAN.repeat(MAX_SCANS));
        assert_eq!(decode(&bytes).unwrap_err(), Unreadable::Scans);
    }

    /// Creates a JPEG in which the header probe finds a different frame than the decoder.
    fn two_faced(seen: (u16, u16), decoded: (u16, u16)) -> Vec<u8> {
        let frame = |(width, height): (u16, u16)| {
            let sides = [height.to_be_bytes(), width.to_be_bytes()].concat();
            [b"\xff\xc0\0\x0b\x08", &sides[..], b"\x01\x01\x11\0"].concat()
        };
        let quantization = [&b"\xff\xdb\0\x43\0"[..], &[1; 64]].concat();
        let table = |class: u8| [b"\xff\xc4\0\x14", &[class, 1][..], &[0; 16]].concat();
        let scan = b"\xff\xda\0\x08\x01\x01\0\0\x3f\0";
        [
            // The probe sees an embedded image, the decoder a marker without content.
            &b"\xff\xd8\xff\xd8\0\x02"[..],
            &quantization,
            &table(0),
            &table(0x10),
            &frame(decoded),
            scan,
            // The probe sees the end of the embedded image.
            b"\xff\xd9\0\x02",
            &frame(seen),
            b"\xff\xd9",
        ]
        .concat()
    }

    /// An image is rejected if the decoder finds a different size than the header.
    #[test]
    fn i01_a_picture_whose_header_has_two_sizes_is_refused() {
        let same = two_faced((16, 16), (16, 16));
        assert_eq!(
            decode(&same).map(|picture| (picture.width(), picture.height())),
            Ok((16, 16))
        );
        for decoded in [(16, 17), (8192, 4089), (8192, 8192), (u16::MAX, u16::MAX)] {
            let bytes = two_faced((16, 16), decoded);
            assert!(bytes.len() < 300, "{}", bytes.len());
            let head = Head::read(&bytes).unwrap();
            assert_eq!((head.width, head.height), (16, 16));
            assert_eq!(decode(&bytes), Err(Unreadable::Damaged), "{decoded:?}");
        }
    }

    /// An animation with a frame larger than the image is rejected.
    #[test]
    fn i01_a_frame_larger_than_its_picture_is_refused() {
        let mut gif = encoded(9, 5, ImageFormat::Gif);
        assert!(decode(&gif).is_ok());
        gif[6..10].copy_from_slice(&[8, 0, 5, 0]);
        assert_eq!(decode(&gif), Err(Unreadable::Damaged));

        let webp = |width: u16, height: u16| {
            let frame = [
                &[0x10, 0, 0, 0x9d, 0x01, 0x2a][..],
                &width.to_le_bytes(),
                &height.to_le_bytes(),
            ]
            .concat();
            let canvas = b"RIFF\x2c\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x0f\0\0\x0f\0\0";
            [&canvas[..], b"VP8 \x0e\0\0\0", &frame, &[0; 4]].concat()
        };
        for (width, height, larger) in [(16, 16, false), (16, 17, true), (16_383, 16_383, true)] {
            let bytes = webp(width, height);
            let head = Head::read(&bytes).unwrap();
            assert_eq!((head.width, head.height), (16, 16));
            assert_eq!(frames(&bytes).any(|pixels| pixels > head.pixels()), larger);
            assert_eq!(
                decode(&bytes).err().filter(|_| larger),
                larger.then_some(Unreadable::Damaged)
            );
        }
    }

    /// Encodes a PNG chunk (ISO/IEC 15948 §5.3).
    fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let named = [name, data].concat();
        let crc = named.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                (crc >> 1) ^ (0xedb8_8320 * (crc & 1))
            })
        });
        [
            &u32::try_from(data.len()).unwrap().to_be_bytes()[..],
            &named,
            &(!crc).to_be_bytes(),
        ]
        .concat()
    }

    /// Returns a small zlib stream that decompresses to megabytes: the data of a blank image.
    fn bomb() -> Vec<u8> {
        let mut blank = Cursor::new(Vec::new());
        image::GrayImage::new(4000, 4000)
            .write_to(&mut blank, ImageFormat::Png)
            .unwrap();
        let blank = blank.into_inner();
        let (mut at, mut packed) = (8, Vec::new());
        while at < blank.len() {
            let length = u32::from_be_bytes(blank[at..at + 4].try_into().unwrap()) as usize;
            if &blank[at + 4..at + 8] == b"IDAT" {
                packed.extend_from_slice(&blank[at + 8..at + 8 + length]);
            }
            at += 12 + length;
        }
        assert!(packed.len() < 1 << 18, "{}", packed.len());
        packed
    }

    /// Metadata is not decompressed, whatever its claimed size, and only the first frame of an
    /// animation is decoded.
    #[test]
    fn i02_metadata_and_extra_frames_are_skipped() {
        let (whole, bomb) = (encoded(9, 5, ImageFormat::Png), bomb());
        let packed = |name: &[u8; 4], head: &[u8]| chunk(name, &[head, &bomb].concat()).repeat(20);
        let frames = |count: u32| {
            let frame = [
                &[0; 4][..],
                &9_u32.to_be_bytes(),
                &5_u32.to_be_bytes(),
                &[0; 14],
            ]
            .concat();
            let rest = [chunk(b"fcTL", &frame), chunk(b"fdAT", &[0; 4])]
                .concat()
                .repeat(count as usize);
            [
                chunk(b"acTL", &[count.to_be_bytes(), [0; 4]].concat()),
                chunk(b"fcTL", &frame),
                rest,
            ]
            .concat()
        };
        for (what, metadata) in [
            ("texts", chunk(b"tEXt", b"a\0b").repeat(100_000)),
            ("packed texts", packed(b"zTXt", b"a\0\0")),
            (
                "packed international texts",
                packed(b"iTXt", b"a\0\x01\0\0\0"),
            ),
            ("profiles", packed(b"iCCP", b"a\0\0")),
            (
                "notes of a camera",
                chunk(b"eXIf", &b"II*\0\x08\0\0\0".repeat(8 << 10)),
            ),
            ("unknown chunks", chunk(b"abCd", &[0; 64]).repeat(100_000)),
            ("frames", frames(10_000)),
        ] {
            let bytes = [&whole[..33], &metadata, &whole[33..]].concat();
            // A decoder may treat some of it as damage, but must not fail otherwise.
            match decode(&bytes) {
                Ok(picture) => assert_eq!((picture.width(), picture.height()), (9, 5), "{what}"),
                Err(refused) => assert_eq!(refused, Unreadable::Damaged, "{what}"),
            }
        }
        let text = [&whole[..33], &packed(b"zTXt", b"a\0\0"), &whole[33..]].concat();
        assert!(decode(&text).is_ok(), "text chunks are not damage");
    }

    /// Only the first frame of an animation is decoded.
    #[test]
    fn i02_an_animation_is_its_first_frame() {
        let mut bytes = Vec::new();
        let mut encoder = image::codecs::gif::GifEncoder::new(&mut bytes);
        for shade in 0..200 {
            let picture = RgbaImage::from_pixel(9, 5, Rgba([shade, 0, 0, 255]));
            encoder.encode_frame(image::Frame::new(picture)).unwrap();
        }
        drop(encoder);
        let picture = decode(&bytes).unwrap().into_rgba8();
        assert_eq!(
            (picture.dimensions(), picture.get_pixel(0, 0)),
            ((9, 5), &Rgba([0, 0, 0, 255]))
        );
    }

    /// Error messages come from a closed set and contain nothing of the file.
    #[test]
    fn i08_the_message_about_a_bad_picture_is_constant() {
        let whole = encoded(9, 5, ImageFormat::Png);
        for at in 0..whole.len() {
            let bent: Vec<u8> = whole
                .iter()
                .enumerate()
                .map(|(i, byte)| if i == at { !byte } else { *byte })
                .collect();
            let Err(refused) = decode(&bent) else {
                continue;
            };
            let message = refused.to_string();
            let sentences = ["it is damaged", "it is neither GIF, JPEG, PNG nor WebP"];
            let is_size =
                message.ends_with("; at most 8192 a side and 33500000 pixels in all are taken");
            assert!(
                is_size || sentences.contains(&message.as_str()),
                "byte {at}: {message}"
            );
        }
    }
}
