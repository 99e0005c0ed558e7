//! Describes a picture for a text-only model: its size, format and main colours.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::DynamicImage;
use picture::Head;

/// Describes a base64 picture in one or two sentences. The error is the reason why it cannot be
/// read.
pub(crate) fn describe(data: &str) -> Result<String, String> {
    let bytes = STANDARD
        .decode(data)
        .map_err(|why| format!("it is not base64: {why}"))?;
    let head = Head::read(&bytes).map_err(|why| why.to_string())?;
    check_cost(head, &bytes)?;
    let pixels = picture::decode(&bytes).map_err(|why| why.to_string())?;
    let Head {
        format,
        width,
        height,
    } = head;
    Ok(format!(
        "The image is a {width}x{height} {}, {}",
        format.name(),
        colours(&pixels)
    ))
}

/// Rejects pictures that need far more memory than their file size, so that small requests stay
/// cheap.
fn check_cost(head: Head, bytes: &[u8]) -> Result<(), String> {
    let found = head.pixels();
    let most = picture::most_pixels(bytes, head.format, ALLOWANCE);
    if found <= most {
        return Ok(());
    }
    let (Head { width, height, .. }, length) = (head, bytes.len());
    Err(format!(
        "it has {found} pixels ({width}x{height}); for a file of {length} bytes at most {most} are accepted"
    ))
}

/// Describes the dominant colour, a second one if it covers a fifth of the picture, and
/// transparency.
fn colours(picture: &DynamicImage) -> String {
    let pixels = picture.thumbnail(SAMPLE, SAMPLE).into_rgba8();
    let mut buckets = [Bucket::default(); COLOURS.len()];
    let mut seen = 0;
    for pixel in pixels.pixels() {
        let [red, green, blue, opacity] = pixel.0;
        if opacity >= 128 {
            buckets[nearest([red, green, blue])].add([red, green, blue]);
            seen += 1;
        }
    }
    let mut order: Vec<usize> = (0..buckets.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(buckets[*index].count));
    let [first, second] = [order[0], order[1]];
    if seen == 0 {
        return "fully transparent.".to_owned();
    }
    let mut text = format!(
        "dominant colour {} ({}).",
        COLOURS[first].0,
        buckets[first].mean()
    );
    if buckets[second].count * 5 >= seen {
        text += &format!(
            " It also has {} ({}).",
            COLOURS[second].0,
            buckets[second].mean()
        );
    }
    if seen < u64::from(pixels.width()) * u64::from(pixels.height()) {
        text += " Parts of it are transparent.";
    }
    text
}

/// The pixels nearest to one named colour.
#[derive(Clone, Copy, Default)]
struct Bucket {
    count: u64,
    sums: [u64; 3],
}

impl Bucket {
    fn add(&mut self, colour: [u8; 3]) {
        self.count += 1;
        for (sum, part) in self.sums.iter_mut().zip(colour) {
            *sum += u64::from(part);
        }
    }

    fn mean(&self) -> String {
        let [red, green, blue] = self.sums.map(|sum| sum / self.count.max(1));
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

/// The index of the nearest named colour.
fn nearest(colour: [u8; 3]) -> usize {
    let distance = |named: [u8; 3]| -> u32 {
        named
            .iter()
            .zip(colour)
            .map(|(a, b)| u32::from(a.abs_diff(b)).pow(2))
            .sum()
    };
    (0..COLOURS.len())
        .min_by_key(|index| distance(COLOURS[*index].1))
        .unwrap_or(0)
}

/// Memory in bytes that any picture may use, however small its file: two megapixels of four bytes.
const ALLOWANCE: u64 = 8 << 20;

/// Longest side of the thumbnail in which colours are counted.
const SAMPLE: u32 = 128;

/// Common colour names, from the named colours of [CSS Color
/// 4](https://www.w3.org/TR/css-color-4/#named-colors).
const COLOURS: [(&str, [u8; 3]); 19] = [
    ("black", [0, 0, 0]),
    ("white", [255, 255, 255]),
    ("grey", [128, 128, 128]),
    ("light grey", [211, 211, 211]),
    ("red", [255, 0, 0]),
    ("dark red", [139, 0, 0]),
    ("green", [0, 128, 0]),
    ("green", [0, 255, 0]),
    ("blue", [0, 0, 255]),
    ("dark blue", [0, 0, 128]),
    ("light blue", [135, 206, 235]),
    ("yellow", [255, 255, 0]),
    ("orange", [255, 165, 0]),
    ("purple", [128, 0, 128]),
    ("magenta", [255, 0, 255]),
    ("pink", [255, 192, 203]),
    ("cyan", [0, 255, 255]),
    ("brown", [139, 69, 19]),
    ("beige", [245, 245, 220]),
];

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::codecs::png::{CompressionType, FilterType, PngEncoder};
    use image::{ImageFormat, Rgba, RgbaImage};

    use super::*;

    fn encoded(picture: RgbaImage, format: ImageFormat) -> String {
        let mut bytes = Cursor::new(Vec::new());
        let picture = DynamicImage::from(picture);
        let written = match format {
            ImageFormat::Jpeg => picture.into_rgb8().write_to(&mut bytes, format),
            _ => picture.write_to(&mut bytes, format),
        };
        written.unwrap();
        STANDARD.encode(bytes.into_inner())
    }

    #[test]
    fn a_plain_picture_is_described_by_its_colour() {
        let red = encoded(
            RgbaImage::from_pixel(64, 64, Rgba([255, 0, 0, 255])),
            ImageFormat::Png,
        );
        assert_eq!(
            describe(&red).unwrap(),
            "The image is a 64x64 PNG, dominant colour red (#ff0000)."
        );
    }

    #[test]
    fn format_is_detected_from_the_bytes() {
        let blue = encoded(
            RgbaImage::from_pixel(9, 5, Rgba([0, 0, 254, 255])),
            ImageFormat::Jpeg,
        );
        let text = describe(&blue).unwrap();
        assert!(
            text.starts_with("The image is a 9x5 JPEG, dominant colour blue (#0000f"),
            "{text}"
        );
    }

    #[test]
    fn a_second_colour_and_transparency_are_described() {
        let flag = RgbaImage::from_fn(30, 30, |_, y| match y {
            0..15 => Rgba([0, 0, 0, 255]),
            15..25 => Rgba([255, 255, 255, 255]),
            _ => Rgba([0, 0, 0, 0]),
        });
        let text = describe(&encoded(flag, ImageFormat::Png)).unwrap();
        assert_eq!(
            text,
            "The image is a 30x30 PNG, dominant colour black (#000000). It also has white (#ffffff). \
             Parts of it are transparent."
        );
        let nothing = encoded(RgbaImage::new(2, 2), ImageFormat::Png);
        assert_eq!(
            describe(&nothing).unwrap(),
            "The image is a 2x2 PNG, fully transparent."
        );
    }

    /// A file of a few kilobytes cannot use a large amount of memory.
    #[test]
    fn l10_a_small_file_takes_little_memory() {
        let mut file = Vec::new();
        let encoder =
            PngEncoder::new_with_quality(&mut file, CompressionType::Best, FilterType::NoFilter);
        RgbaImage::new(4096, 2048)
            .write_with_encoder(encoder)
            .unwrap();
        assert!(file.len() < 48 << 10, "{} bytes", file.len());
        let (length, most) = (file.len(), (8_u64 << 20).max(256 * file.len() as u64) / 4);
        assert_eq!(
            describe(&STANDARD.encode(&file)).unwrap_err(),
            format!(
                "it has 8388608 pixels (4096x2048); for a file of {length} bytes at most {most} are accepted"
            )
        );
        let screen = encoded(RgbaImage::new(1920, 1080), ImageFormat::Png);
        assert_eq!(
            describe(&screen).unwrap(),
            "The image is a 1920x1080 PNG, fully transparent."
        );
    }

    #[test]
    fn invalid_pictures_are_refused() {
        assert!(describe("?").unwrap_err().starts_with("it is not base64"));
        assert_eq!(
            describe("aGVsbG8=").unwrap_err(),
            "it is neither GIF, JPEG, PNG nor WebP"
        );
        let wide = encoded(RgbaImage::new(8193, 1), ImageFormat::Png);
        assert!(
            describe(&wide)
                .unwrap_err()
                .starts_with("it is 8193x1; at most 8192 a side")
        );
        let whole = STANDARD
            .decode(encoded(RgbaImage::new(50, 50), ImageFormat::Png))
            .unwrap();
        assert!(describe(&STANDARD.encode(&whole[..whole.len() / 2])).is_err());
    }
}
