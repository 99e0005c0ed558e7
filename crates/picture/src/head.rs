//! Image headers: format and size.

use thiserror::Error;

use crate::orientation::Orientation;

/// An image file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    Webp,
    /// GIF.
    Gif,
}

/// The format and size of an image, read from its header. If the file has an orientation in its
/// metadata, this is the size of the upright picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    /// The file format.
    pub format: Format,
    /// The width in pixels: 1 to [`MAX_SIDE`].
    pub width: u32,
    /// The height in pixels: 1 to [`MAX_SIDE`].
    pub height: u32,
}

/// The reason why an image is rejected. `Display` completes "the picture cannot be used: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The bytes are not in a supported format.
    #[error("it is neither GIF, JPEG, PNG nor WebP")]
    Kind,
    /// The file is truncated or inconsistent.
    #[error("it is damaged")]
    Damaged,
    /// The image exceeds the pixel limits.
    #[error(
        "it is {width}x{height}; at most {MAX_SIDE} a side and {MAX_PIXELS} pixels in all are taken"
    )]
    TooLarge {
        /// The width in pixels.
        width: usize,
        /// The height in pixels.
        height: usize,
    },
    /// A JPEG with so many scans that decoding it would take unreasonably long.
    #[error("it has more than {MAX_SCANS} scans")]
    Scans,
}

/// Maximum width and height in pixels.
pub const MAX_SIDE: u32 = 8192;
/// Maximum total number of pixels.
pub const MAX_PIXELS: u64 = 33_500_000;
/// Maximum number of scans of a progressive JPEG; encoders produce about ten.
pub(crate) const MAX_SCANS: usize = 100;

impl Format {
    /// Detects the format from the first bytes of a file.
    #[must_use]
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        // Feature unification may build `imagesize` with twenty more formats; this keeps their
        // parsers unreachable.
        match bytes.first_chunk::<12>()? {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some(Self::Webp),
            [b'G', b'I', b'F', b'8', ..] => Some(Self::Gif),
            _ => None,
        }
    }

    /// Returns the media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
        }
    }

    /// Returns the display name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Webp => "WebP",
            Self::Gif => "GIF",
        }
    }
}

impl Head {
    /// Reads the header without decoding pixels.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an image or exceed the pixel limits.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let format = Format::sniff(bytes).ok_or(Unreadable::Kind)?;
        let size = imagesize::blob_size(bytes).map_err(|_| Unreadable::Damaged)?;
        let too_large = Unreadable::TooLarge {
            width: size.width,
            height: size.height,
        };
        let side = |side: usize| u32::try_from(side).ok().filter(|side| *side <= MAX_SIDE);
        let (Some(mut width), Some(mut height)) = (side(size.width), side(size.height)) else {
            return Err(too_large);
        };
        if Orientation::of(bytes, format).swaps_sides() {
            (width, height) = (height, width);
        }
        let head = Self {
            format,
            width,
            height,
        };
        match head.pixels() {
            0 => Err(Unreadable::Damaged),
            1..=MAX_PIXELS => Ok(head),
            _ => Err(too_large),
        }
    }

    /// Returns the total number of pixels.
    #[must_use]
    pub const fn pixels(self) -> u64 {
        self.width as u64 * self.height as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the header of a PNG of the given size.
    fn png(width: u32, height: u32) -> Result<Head, Unreadable> {
        let sizes = [width.to_be_bytes(), height.to_be_bytes()].concat();
        Head::read(
            &[
                b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(),
                &sizes,
                b"\x08\x06\0\0\0\0\0\0\0",
            ]
            .concat(),
        )
    }

    /// Each format is detected by the signature in its specification; similar signatures are not.
    #[test]
    fn the_four_formats_are_recognized_by_their_first_twelve_bytes() {
        for (bytes, expected) in [
            (b"\x89PNG\r\n\x1a\n\0\0\0\x0d", Some(Format::Png)),
            (b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01", Some(Format::Jpeg)),
            (b"RIFF\x1a\0\0\0WEBP", Some(Format::Webp)),
            (b"GIF87a\x01\0\x01\0\0\0", Some(Format::Gif)),
            (b"GIF89a\x01\0\x01\0\0\0", Some(Format::Gif)),
            (b"RIFF\x1a\0\0\0WAVE", None),
            (b"BM\x1a\0\0\0\0\0\0\0\x1a\0", None),
            (b"\0\0\0\x18ftypheic", None),
            (b"II*\0\x08\0\0\0\0\0\0\0", None),
        ] {
            assert_eq!(Format::sniff(bytes), expected, "{}", bytes.escape_ascii());
            assert_eq!(
                Format::sniff(&bytes[..11]),
                None,
                "{} cut short",
                bytes.escape_ascii()
            );
        }
    }

    #[test]
    fn each_limit_stands_alone() {
        assert_eq!(
            png(MAX_SIDE, 4089),
            Ok(Head {
                format: Format::Png,
                width: MAX_SIDE,
                height: 4089
            })
        );
        for (width, height) in [(MAX_SIDE + 1, 1), (1, MAX_SIDE + 1), (MAX_SIDE, 4090)] {
            let too_large = Unreadable::TooLarge {
                width: width as usize,
                height: height as usize,
            };
            assert_eq!(png(width, height), Err(too_large));
        }
    }

    #[test]
    fn a_picture_without_pixels_is_damaged() {
        assert_eq!([png(0, 1), png(1, 0)], [Err(Unreadable::Damaged); 2]);
    }
}
