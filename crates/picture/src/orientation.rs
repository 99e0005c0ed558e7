//! The orientation in the Exif metadata of a photograph: cameras store the rows as the sensor has
//! them, and how to turn them upright (CIPA DC-008, "Exif 3.0", the tag Orientation).

use crate::Format;

/// The way from the stored pixels to the upright picture: 1 to 8, as in the metadata. 1 is no
/// change; from 5 on, rows become columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orientation(pub(crate) u8);

impl Orientation {
    /// Reads the orientation of a file. Without a valid one, its pixels are upright.
    pub(crate) fn of(file: &[u8], format: Format) -> Self {
        let exif = match format {
            Format::Jpeg => of_jpeg(file),
            Format::Png => of_png(file),
            Format::Webp => of_webp(file),
            Format::Gif => None,
        };
        let value = exif.and_then(orientation);
        Self(value.filter(|value| (1..=8).contains(value)).unwrap_or(1))
    }

    /// Returns true if rows become columns.
    pub(crate) const fn swaps_sides(self) -> bool {
        self.0 > 4
    }
}

/// Finds the metadata before the first scan of a JPEG: a segment APP1 that begins with `Exif`
/// (ITU-T T.81 §B.1.1.4).
fn of_jpeg(file: &[u8]) -> Option<&[u8]> {
    let mut rest = file.get(2..)?;
    loop {
        let [0xff, marker, after @ ..] = rest else {
            return None;
        };
        rest = match *marker {
            // A marker may have any number of fill bytes in front.
            0xff => &rest[1..],
            START_OF_SCAN | END_OF_IMAGE => return None,
            _ => {
                let length = u16::from_be_bytes(*after.first_chunk()?);
                let segment = after.get(2..length.into())?;
                if let (APP1, Some(exif)) = (*marker, segment.strip_prefix(EXIF)) {
                    return Some(exif);
                }
                &after[length.into()..]
            }
        };
    }
}

/// Finds the chunk `eXIf` of a PNG (<https://www.w3.org/TR/png-3/#eXIf>).
fn of_png(file: &[u8]) -> Option<&[u8]> {
    let mut rest = file.get(8..)?;
    loop {
        let (length, after) = rest.split_first_chunk()?;
        let (name, after) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        match name {
            b"eXIf" => return after.get(..length),
            b"IEND" => return None,
            // The checksum follows the data.
            _ => rest = after.get(length.checked_add(4)?..)?,
        }
    }
}

/// Finds the chunk `EXIF` of a WebP (<https://developers.google.com/speed/webp/docs/riff_container>).
fn of_webp(file: &[u8]) -> Option<&[u8]> {
    let mut rest = file.get(12..)?;
    loop {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (length, after) = after.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        if name == b"EXIF" {
            let exif = after.get(..length)?;
            // Some programs write the prefix of JPEG here.
            return Some(exif.strip_prefix(EXIF).unwrap_or(exif));
        }
        rest = after.get(length.checked_add(length % 2)?..)?;
    }
}

/// Reads the orientation from the first directory of TIFF data.
fn orientation(exif: &[u8]) -> Option<u8> {
    let is_little = match exif.first_chunk()? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let u16_at = |at: usize| {
        let bytes = *exif.get(at..)?.first_chunk()?;
        Some(match is_little {
            true => u16::from_le_bytes(bytes),
            false => u16::from_be_bytes(bytes),
        })
    };
    let offset = *exif.get(4..)?.first_chunk()?;
    let directory = match is_little {
        true => u32::from_le_bytes(offset),
        false => u32::from_be_bytes(offset),
    };
    let directory = usize::try_from(directory).ok()?;
    let entries = directory.checked_add(2)?;
    let mut places = (0..usize::from(u16_at(directory)?)).map(|entry| entries + entry * ENTRY);
    let place = places.find(|place| u16_at(*place) == Some(ORIENTATION))?;
    let is_short = u16_at(place + 2)? == SHORT;
    u16_at(place + 8)
        .filter(|_| is_short)
        .and_then(|value| value.try_into().ok())
}

const EXIF: &[u8] = b"Exif\0\0";
const APP1: u8 = 0xe1;
const START_OF_SCAN: u8 = 0xda;
const END_OF_IMAGE: u8 = 0xd9;
/// The tag of the orientation, and the type of its value.
const ORIENTATION: u16 = 0x0112;
const SHORT: u16 = 3;
/// The length of an entry of a directory.
const ENTRY: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// TIFF data with one other entry before the orientation.
    fn exif(is_little: bool, value: u16) -> Vec<u8> {
        let short = |number: u16| match is_little {
            true => number.to_le_bytes(),
            false => number.to_be_bytes(),
        };
        let long = |number: u32| match is_little {
            true => number.to_le_bytes(),
            false => number.to_be_bytes(),
        };
        let entry = |tag: u16, value: u16| {
            [&short(tag)[..], &short(3), &long(1), &short(value), &[0; 2]].concat()
        };
        let start: &[u8] = if is_little { b"II*\0" } else { b"MM\0*" };
        [
            start,
            &long(8),
            &short(2),
            &entry(0x0100, 6),
            &entry(0x0112, value),
            &long(0),
        ]
        .concat()
    }

    fn jpeg(exif: &[u8]) -> Vec<u8> {
        let segment = |marker: u8, data: &[u8]| {
            let length = u16::try_from(data.len() + 2).unwrap();
            [&[0xff, marker], &length.to_be_bytes()[..], data].concat()
        };
        let exif = [b"Exif\0\0", exif].concat();
        [
            &b"\xff\xd8"[..],
            &segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"),
            &segment(0xe1, b"http://ns.adobe.com/xap/1.0/\0"),
            b"\xff",
            &segment(0xe1, &exif),
            b"\xff\xda",
        ]
        .concat()
    }

    fn png(exif: &[u8]) -> Vec<u8> {
        let chunk = |name: &[u8], data: &[u8]| {
            let length = u32::try_from(data.len()).unwrap();
            [&length.to_be_bytes()[..], name, data, &[0; 4]].concat()
        };
        [
            &b"\x89PNG\r\n\x1a\n"[..],
            &chunk(b"IHDR", &[0; 13]),
            &chunk(b"IDAT", &[0; 5]),
            &chunk(b"eXIf", exif),
            &chunk(b"IEND", b""),
        ]
        .concat()
    }

    fn webp(exif: &[u8]) -> Vec<u8> {
        let chunk = |name: &[u8], data: &[u8]| {
            let length = u32::try_from(data.len()).unwrap();
            let padding = vec![0; data.len() % 2];
            [name, &length.to_le_bytes()[..], data, &padding].concat()
        };
        [
            &b"RIFF\0\0\0\0WEBP"[..],
            &chunk(b"VP8X", &[0; 10]),
            &chunk(b"VP8L", &[0; 7]),
            &chunk(b"EXIF", exif),
        ]
        .concat()
    }

    #[test]
    fn the_orientation_is_read_from_each_format() {
        for value in 0..=9 {
            let known = if (1..=8).contains(&value) { value } else { 1 };
            let expected = Orientation(u8::try_from(known).unwrap());
            for is_little in [true, false] {
                let exif = exif(is_little, value);
                let prefixed = [b"Exif\0\0", &exif[..]].concat();
                assert_eq!(Orientation::of(&jpeg(&exif), Format::Jpeg), expected);
                assert_eq!(Orientation::of(&png(&exif), Format::Png), expected);
                assert_eq!(Orientation::of(&webp(&exif), Format::Webp), expected);
                assert_eq!(Orientation::of(&webp(&prefixed), Format::Webp), expected);
            }
        }
    }

    #[test]
    fn metadata_that_is_cut_or_bent_is_none() {
        let files = [
            (Format::Jpeg, jpeg(&exif(true, 6))),
            (Format::Png, png(&exif(true, 6))),
            (Format::Webp, webp(&exif(true, 6))),
        ];
        for (format, whole) in files {
            for cut in 0..whole.len() {
                let found = Orientation::of(&whole[..cut], format).0;
                assert!([1, 6].contains(&found), "{format:?} cut at {cut}");
            }
            for at in 0..whole.len() {
                for byte in [0, 1, 0x7f, 0xff] {
                    let mut bent = whole.clone();
                    bent[at] = byte;
                    assert!((1..=8).contains(&Orientation::of(&bent, format).0));
                }
            }
        }
    }
}
