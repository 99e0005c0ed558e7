//! The pictures of an edit: checked against every rule by their headers, then decoded once.

use bytes::Bytes;
use engine::{EngineError, ImageEdit, Pixels, Size};
use image::{DynamicImage, RgbaImage};
use picture::{Format, Head, MAX_PIXELS, MAX_SIDE};

use crate::fit::{Source, cover};
use crate::mask::Mask;

/// Pictures with valid headers, not decoded yet.
pub(crate) struct Files {
    pub(crate) references: Vec<File>,
    pub(crate) mask: Option<File>,
}

/// Decoded pictures, none with more pixels than its file or the output has.
pub(crate) struct Inputs {
    /// One or two.
    pub(crate) references: Vec<RgbaImage>,
    pub(crate) mask: Option<Mask>,
}

pub(crate) struct File {
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
            let reason = format!("There are {count} pictures to start from; 1 or 2 are accepted.");
            return Err(unsupported("images", reason));
        }
        let reference = |(at, bytes)| File::read(bytes, format!("images[{at}].image_url"));
        let references = edit
            .references
            .into_iter()
            .enumerate()
            .map(reference)
            .collect::<Result<Vec<_>, _>>()?;
        let mask = edit
            .mask
            .map(|bytes| File::read_mask(bytes, references[0].size()))
            .transpose()?;
        Ok(Self { references, mask })
    }

    /// The sizes of all, the mask last.
    pub(crate) fn sizes(&self) -> Vec<Pixels> {
        self.references
            .iter()
            .chain(&self.mask)
            .map(File::size)
            .collect()
    }

    /// Decodes one after the other; each file and each decoder's copy is freed before the next is
    /// read.
    pub(crate) fn decode(self, output: Pixels) -> Result<Inputs, EngineError> {
        for file in self.references.iter().chain(&self.mask) {
            file.check_cost(output)?;
        }
        let hold = |file: File| Ok(held(file.decode()?, output));
        let references = self
            .references
            .into_iter()
            .map(hold)
            .collect::<Result<_, EngineError>>()?;
        Ok(Inputs {
            references,
            mask: self.mask.map(|file| mask(file, output)).transpose()?,
        })
    }
}

impl File {
    fn read(bytes: Bytes, param: String) -> Result<Self, EngineError> {
        let head = Head::read(&bytes).map_err(|why| unusable(&param, why))?;
        if head.format == Format::Gif {
            return Err(unsupported(
                &param,
                "The picture is a GIF; PNG, JPEG and WebP are accepted.".to_owned(),
            ));
        }
        Ok(Self { bytes, head, param })
    }

    fn read_mask(bytes: Bytes, reference: Pixels) -> Result<Self, EngineError> {
        let mask = Self::read(bytes, "mask".to_owned())?;
        if mask.head.format != Format::Png {
            let found = mask.head.format.name();
            let reason = format!("The mask is a {found}; a PNG with an alpha channel is accepted.");
            return Err(unsupported("mask", reason));
        }
        if mask.size() != reference {
            let found = text(mask.size());
            let wanted = text(reference);
            let reason = format!(
                "The mask is {found} and the first picture is {wanted}; the same size is accepted."
            );
            return Err(unsupported("mask", reason));
        }
        Ok(mask)
    }

    fn size(&self) -> Pixels {
        Pixels::new(self.head.width, self.head.height)
    }

    /// Bounds the cost of a request by the pixels that it asks for or the bytes that it sent.
    fn check_cost(&self, output: Pixels) -> Result<(), EngineError> {
        let most = picture::most_pixels(
            &self.bytes,
            self.head.format,
            output.count() * MOST_BY_OUTPUT,
        );
        let found = self.head.pixels();
        if found <= most {
            return Ok(());
        }
        let size = text(self.size());
        let output = text(output);
        let reason = format!(
            "The picture has {found} pixels ({size}); for an output of {output} at most {most} are accepted."
        );
        Err(unsupported(&self.param, reason))
    }

    fn decode(self) -> Result<DynamicImage, EngineError> {
        picture::decode(&self.bytes).map_err(|why| unusable(&self.param, why))
    }
}

/// The size that a request asks for, if it can be drawn. A request without a size gets one near to
/// `auto`.
pub(crate) fn output_size(asked: Size, auto: Pixels) -> Result<Pixels, EngineError> {
    let Size::Exact(size) = asked else {
        return Ok(nearest_size(auto));
    };
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
fn nearest_size(size: Pixels) -> Pixels {
    let least = f64::from(size.width.min(size.height)).max(1.0);
    let scale = (f64::from(MIN_SIDE) / least).max(1.0);
    let side = |side: u32| ((f64::from(side) * scale) as u32).clamp(MIN_SIDE, MAX_SIDE);
    let size = Pixels::new(side(size.width), side(size.height));
    let longest =
        u32::try_from(MAX_PIXELS / u64::from(size.width.min(size.height))).unwrap_or(MAX_SIDE);
    Pixels::new(size.width.min(longest), size.height.min(longest))
}

/// An error of the caller.
fn unsupported(param: &str, reason: String) -> EngineError {
    EngineError::Unsupported {
        param: Some(param.to_owned()),
        reason,
    }
}

fn unusable(param: &str, why: impl std::fmt::Display) -> EngineError {
    let what = if param == "mask" { "mask" } else { "picture" };
    let accepted = if param == "mask" {
        "A PNG with an alpha channel is"
    } else {
        "PNG, JPEG and WebP are"
    };
    unsupported(
        param,
        format!("The {what} cannot be used: {why}. {accepted} accepted."),
    )
}

fn text(size: Pixels) -> String {
    format!("{}x{}", size.width, size.height)
}

/// The pixels that are kept for the request: at the size of the picture or of the output, whichever
/// is smaller.
fn held(decoded: DynamicImage, output: Pixels) -> RgbaImage {
    if decoded.size().count() > output.count() {
        cover(&decoded, output)
    } else {
        decoded.into_rgba8()
    }
}

fn mask(file: File, output: Pixels) -> Result<Mask, EngineError> {
    let decoded = file.decode()?;
    if !decoded.color().has_alpha() {
        let reason = "The mask has no alpha channel; a PNG whose transparent pixels are where to edit is accepted.";
        return Err(unsupported("mask", reason.to_owned()));
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
            let refused = output_size(Size::Exact(size), size)
                .unwrap_err()
                .to_string();
            assert!(
                refused.contains(&text(size)) && refused.contains("33500000"),
                "{refused}"
            );
            let nearest = output_size(Size::Auto, size).unwrap();
            assert!(
                output_size(Size::Exact(nearest), size).is_ok(),
                "{size:?} became {nearest:?}"
            );
        }
        for size in [
            Pixels::new(16, 16),
            Pixels::new(8192, 4089),
            Pixels::new(1254, 1254),
        ] {
            assert_eq!(
                (
                    output_size(Size::Exact(size), size).unwrap(),
                    nearest_size(size)
                ),
                (size, size)
            );
        }
        assert_eq!(nearest_size(Pixels::new(5, 100)), Pixels::new(16, 320));
        assert_eq!(nearest_size(Pixels::new(1, 8192)), Pixels::new(16, 8192));
    }
}
