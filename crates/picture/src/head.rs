//! What the header of a picture says.

use thiserror::Error;

/// An encoding of pictures.
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

/// What the header of a picture says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    /// Its encoding.
    pub format: Format,
    /// Pixels from left to right: 1 to [`MAX_SIDE`].
    pub width: u32,
    /// Pixels from top to bottom: 1 to [`MAX_SIDE`].
    pub height: u32,
}

/// Why bytes are no picture that is taken. Its `Display` completes "the picture cannot be used: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// They begin like none of the formats.
    #[error("it is neither GIF, JPEG, PNG nor WebP")]
    Kind,
    /// They break off or contradict themselves.
    #[error("it is damaged")]
    Damaged,
    /// More pixels than are taken.
    #[error("it is {width}x{height}; at most {MAX_SIDE} a side and {MAX_PIXELS} pixels in all are taken")]
    TooLarge {
        /// From left to right.
        width: usize,
        /// From top to bottom.
        height: usize,
    },
    /// A JPEG that refines itself so often that reading it would be work without end.
    #[error("it has more than {MAX_SCANS} scans")]
    Scans,
}

/// The most pixels a side.
pub const MAX_SIDE: u32 = 8192;
/// The most pixels in all.
pub const MAX_PIXELS: u64 = 33_500_000;
/// The most passes of a progressive JPEG: encoders make about ten.
pub(crate) const MAX_SCANS: usize = 100;

impl Format {
    /// Tells the encoding from the first bytes.
    #[must_use]
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        // `imagesize` may be built with twenty more formats, for the sake of others: none of their readers is asked.
        match bytes.first_chunk::<12>()? {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some(Self::Webp),
            [b'G', b'I', b'F', b'8', ..] => Some(Self::Gif),
            _ => None,
        }
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
        }
    }

    /// Its name for people.
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
    /// Reads the header; the pixels are not looked at.
    ///
    /// # Errors
    /// When the bytes are no picture, or one with more pixels than are taken.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let format = Format::sniff(bytes).ok_or(Unreadable::Kind)?;
        let size = imagesize::blob_size(bytes).map_err(|_| Unreadable::Damaged)?;
        let too_large = Unreadable::TooLarge { width: size.width, height: size.height };
        let side = |side: usize| u32::try_from(side).ok().filter(|side| *side <= MAX_SIDE);
        let (Some(width), Some(height)) = (side(size.width), side(size.height)) else { return Err(too_large) };
        let head = Self { format, width, height };
        match head.pixels() {
            0 => Err(Unreadable::Damaged),
            1..=MAX_PIXELS => Ok(head),
            _ => Err(too_large),
        }
    }

    /// How many pixels there are in all.
    #[must_use]
    pub const fn pixels(self) -> u64 {
        self.width as u64 * self.height as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the header of a PNG of this size says.
    fn png(width: u32, height: u32) -> Result<Head, Unreadable> {
        let sizes = [width.to_be_bytes(), height.to_be_bytes()].concat();
        Head::read(&[b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), &sizes, b"\x08\x06\0\0\0\0\0\0\0"].concat())
    }

    /// The formats by the bytes that their specifications begin with, and no other, however alike.
    #[test]
    fn the_four_formats_are_told_by_their_first_twelve_bytes() {
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
            assert_eq!(Format::sniff(&bytes[..11]), None, "{} cut short", bytes.escape_ascii());
        }
    }

    #[test]
    fn each_limit_stands_alone() {
        assert_eq!(png(MAX_SIDE, 4089), Ok(Head { format: Format::Png, width: MAX_SIDE, height: 4089 }));
        for (width, height) in [(MAX_SIDE + 1, 1), (1, MAX_SIDE + 1), (MAX_SIDE, 4090)] {
            let too_large = Unreadable::TooLarge { width: width as usize, height: height as usize };
            assert_eq!(png(width, height), Err(too_large));
        }
    }

    #[test]
    fn a_picture_without_pixels_is_damaged() {
        assert_eq!([png(0, 1), png(1, 0)], [Err(Unreadable::Damaged); 2]);
    }
}
