//! The pictures of an edit: checked against every rule by their headers, then decoded once.

use bytes::Bytes;
use engine::{EngineError, ImageEdit, Pixels};
use image::{DynamicImage, RgbaImage};
use picture::{Format, Head, MAX_PIXELS, MAX_SIDE};

use crate::fit::{Source, cover};
use crate::mask::Mask;

/// Pictures with valid headers, not decoded yet.
pub(crate) struct Files {
    references: Vec<File>,
    mask: Option<File>,
}

/// Decoded pictures, none with more pixels than its file or the output has.
pub(crate) struct Inputs {
    /// One or two.
    pub(crate) references: Vec<RgbaImage>,
    pub(crate) mask: Option<Mask>,
}

struct File {
    bytes: Bytes,
    head: Head,
    /// The name of its field in the request.
    param: String,
}

impl Files {
    /// Reads the headers.
    pub(crate) fn read(edit: ImageEdit) -> Result<Self, EngineError> {
        let count = edit.references.len();
        if !(1..=MOST_REFERENCES).contains(&count) {
            return Err(unsupported(
                "images",
                format!("There are {count} pictures to start from; 1 or 2 are accepted."),
            ));
        }
        let reference = |(at, bytes)| File::read(bytes, format!("images[{at}].image_url"));
        let references = edit.references.into_iter().enumerate().map(reference).collect::<Result<Vec<_>, _>>()?;
        let mask = edit.mask.map(|bytes| File::read_mask(bytes, references[0].size())).transpose()?;
        Ok(Self { references, mask })
    }

    pub(crate) fn references(&self) -> usize {
        self.references.len()
    }

    pub(crate) fn has_mask(&self) -> bool {
        self.mask.is_some()
    }

    /// The size of the first reference.
    pub(crate) fn size(&self) -> Pixels {
        self.references[0].size()
    }

    /// The sizes of all, mask included.
    pub(crate) fn sizes(&self) -> Vec<Pixels> {
        self.references.iter().chain(&self.mask).map(File::size).collect()
    }

    /// Decodes one after the other; each file and each decoder's copy is freed before the next is read.
    pub(crate) fn decode(self, output: Pixels) -> Result<Inputs, EngineError> {
        for file in self.references.iter().chain(&self.mask) {
            file.check_cost(output)?;
        }
        let hold = |file: File| Ok(held(file.decode()?.1, output));
        let references = self.references.into_iter().map(hold).collect::<Result<_, EngineError>>()?;
        Ok(Inputs { references, mask: self.mask.map(|file| mask(file, output)).transpose()? })
    }
}

impl Inputs {
    /// Tests that no pixel of the first reference is transparent.
    pub(crate) fn is_opaque(&self) -> bool {
        self.references[0].pixels().all(|pixel| pixel[3] == u8::MAX)
    }
}

impl File {
    fn read(bytes: Bytes, param: String) -> Result<Self, EngineError> {
        let head = match Head::read(&bytes) {
            Ok(head) => head,
            Err(why) => return Err(unusable(&param, why)),
        };
        if head.format == Format::Gif {
            return Err(unsupported(&param, "The picture is a GIF; PNG, JPEG and WebP are accepted.".to_owned()));
        }
        Ok(Self { bytes, head, param })
    }

    fn read_mask(bytes: Bytes, reference: Pixels) -> Result<Self, EngineError> {
        let mask = Self::read(bytes, "mask".to_owned())?;
        if mask.head.format != Format::Png {
            let found = mask.head.format.name();
            return Err(unsupported(
                "mask",
                format!("The mask is a {found}; a PNG with an alpha channel is accepted."),
            ));
        }
        if mask.size() != reference {
            let (found, wanted) = (text(mask.size()), text(reference));
            let reason = format!("The mask is {found} and the first picture is {wanted}; the same size is accepted.");
            return Err(unsupported("mask", reason));
        }
        Ok(mask)
    }

    fn size(&self) -> Pixels {
        Pixels::new(self.head.width, self.head.height)
    }

    /// Bounds the cost of a request by the pixels that it asks for or the bytes that it sent.
    fn check_cost(&self, output: Pixels) -> Result<(), EngineError> {
        let most = picture::most_pixels(&self.bytes, self.head.format, output.count() * MOST_BY_OUTPUT);
        let found = self.head.pixels();
        if found <= most {
            return Ok(());
        }
        let (width, height) = (self.head.width, self.head.height);
        let reason = format!(
            "The picture has {found} pixels ({width}x{height}); for an output of {} at most {most} are accepted.",
            text(output)
        );
        Err(unsupported(&self.param, reason))
    }

    /// The pixels, and the name of the field for errors.
    fn decode(self) -> Result<(String, DynamicImage), EngineError> {
        let decoded = picture::decode(&self.bytes).map_err(|why| unusable(&self.param, why))?;
        Ok((self.param, decoded))
    }
}

/// Refuses a size that cannot be drawn.
pub(crate) fn check_size(size: Pixels) -> Result<Pixels, EngineError> {
    let sides = MIN_SIDE..=MAX_SIDE;
    if sides.contains(&size.width) && sides.contains(&size.height) && size.count() <= MAX_PIXELS {
        return Ok(size);
    }
    let reason = format!(
        "The size is {}; {MIN_SIDE} to {MAX_SIDE} a side and at most {MAX_PIXELS} pixels in all are accepted.",
        text(size)
    );
    Err(unsupported("size", reason))
}

/// A size near to this one that can be drawn.
pub(crate) fn nearest_size(size: Pixels) -> Pixels {
    let least = f64::from(size.width.min(size.height)).max(1.0);
    let scale = (f64::from(MIN_SIDE) / least).max(1.0);
    let side = |side: u32| ((f64::from(side) * scale) as u32).clamp(MIN_SIDE, MAX_SIDE);
    let size = Pixels::new(side(size.width), side(size.height));
    let longest = u32::try_from(MAX_PIXELS / u64::from(size.width.min(size.height))).unwrap_or(MAX_SIDE);
    Pixels::new(size.width.min(longest), size.height.min(longest))
}

/// An error of the caller.
pub(crate) fn unsupported(param: &str, reason: String) -> EngineError {
    EngineError::Unsupported { param: Some(param.to_owned()), reason }
}

fn unusable(param: &str, why: impl std::fmt::Display) -> EngineError {
    let what = if param == "mask" { "mask" } else { "picture" };
    let accepted = if param == "mask" { "A PNG with an alpha channel is" } else { "PNG, JPEG and WebP are" };
    unsupported(param, format!("The {what} cannot be used: {why}. {accepted} accepted."))
}

fn text(size: Pixels) -> String {
    format!("{}x{}", size.width, size.height)
}

/// The pixels that are kept for the request: at the size of the picture or of the output, whichever is smaller.
fn held(decoded: DynamicImage, output: Pixels) -> RgbaImage {
    if decoded.size().count() > output.count() { cover(&decoded, output) } else { decoded.into_rgba8() }
}

fn mask(file: File, output: Pixels) -> Result<Mask, EngineError> {
    let (param, decoded) = file.decode()?;
    if !decoded.color().has_alpha() {
        let reason = "The mask has no alpha channel; a PNG whose transparent pixels are where to edit is accepted.";
        return Err(unsupported(&param, reason.to_owned()));
    }
    Ok(Mask::new(&held(decoded, output)))
}

pub(crate) const MOST_REFERENCES: usize = 2;
const MIN_SIDE: u32 = 16;
/// Bytes that decoding a reference takes for each pixel of the output: eight pixels of four bytes.
const MOST_BY_OUTPUT: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_cannot_be_drawn_are_refused_and_brought_near() {
        for (width, height) in [(15, 100), (100, 15), (8193, 100), (8192, 8192)] {
            let size = Pixels::new(width, height);
            let refused = check_size(size).unwrap_err().to_string();
            assert!(refused.contains(&text(size)) && refused.contains("33500000"), "{refused}");
            assert!(check_size(nearest_size(size)).is_ok(), "{size:?} became {:?}", nearest_size(size));
        }
        for size in [Pixels::new(16, 16), Pixels::new(8192, 4089), Pixels::new(1254, 1254)] {
            assert_eq!((check_size(size).unwrap(), nearest_size(size)), (size, size));
        }
        assert_eq!(nearest_size(Pixels::new(5, 100)), Pixels::new(16, 320));
        assert_eq!(nearest_size(Pixels::new(1, 8192)), Pixels::new(16, 8192));
    }
}
