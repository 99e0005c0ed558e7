//! The work of one request: its preparation, and its pictures one step at a time.
//!
//! The memory limit in the README covers the references, the canvas, and one layer on its way onto
//! the canvas.

use engine::{
    Background, EngineError, ImageEvent, ImageFormat, ImageRequest, ImageTraits, ImageUsage,
    Pixels, Quality,
};
use image::RgbaImage;

use crate::colour::Colour;
use crate::edit::{Edit, Plan, lay_on};
use crate::encode::encode;
use crate::fit::cover;
use crate::inputs::{Files, output_size};
use crate::prompt::Prompt;
use crate::{render, usage};

/// An accepted request with everything that its pictures are made of.
pub(crate) struct Job {
    work: Work,
    pub(crate) traits: ImageTraits,
    compression: Option<u8>,
    count: u32,
    previews: u32,
    seed: u64,
    input: ImageUsage,
}

enum Work {
    Paint(Prompt),
    Edit(Box<Edit>),
}

impl Job {
    /// Prepares the drawing. It decodes, so it is work for a thread that may block.
    pub(crate) fn open(mut request: ImageRequest) -> Result<Self, EngineError> {
        let seed = match request.seed {
            Some(seed) => seed.cast_unsigned(),
            None => getrandom::u64()
                .map_err(|why| EngineError::Internal(format!("no random seed: {why}")))?,
        };
        let (work, size, clear, sizes) = match request.edit.take() {
            Some(edit) => Self::open_edit(&request, Files::read(edit)?)?,
            None => {
                let prompt = Prompt::read(&request.prompt);
                let size = output_size(request.size, prompt.auto_size())?;
                let clear = prompt.cut_out;
                (Work::Paint(prompt), size, clear, Vec::new())
            }
        };
        let implied = if clear {
            Background::Transparent
        } else {
            Background::Opaque
        };
        let background = match request.format {
            // It has no alpha.
            ImageFormat::Jpeg => Background::Opaque,
            ImageFormat::Png | ImageFormat::Webp => request.background.unwrap_or(implied),
        };
        let quality = request.quality.unwrap_or(Quality::Medium);
        Ok(Self {
            work,
            traits: ImageTraits {
                size,
                quality,
                background,
                format: request.format,
            },
            compression: request.compression,
            count: request.count.max(1),
            previews: request.previews.min(MOST_PREVIEWS),
            seed,
            input: usage::input(&request.prompt, &sizes),
        })
    }

    fn open_edit(
        request: &ImageRequest,
        files: Files,
    ) -> Result<(Work, Pixels, bool, Vec<Pixels>), EngineError> {
        let sizes = files.sizes();
        let masked = files.mask.is_some();
        let mut plan = Plan::read(&request.prompt, files.references.len(), masked);
        let own = sizes[0];
        let turned = if plan.turns() && !masked {
            Pixels::new(own.height, own.width)
        } else {
            own
        };
        let size = output_size(request.size, turned)?;
        let inputs = files.decode(size)?;
        let opaque = inputs.references[0]
            .pixels()
            .all(|pixel| pixel[3] == u8::MAX);
        if request.background == Some(Background::Transparent) && opaque && !masked {
            plan.clear();
        }
        let clear = plan.clears() || !opaque && (masked || !plan.backs());
        Ok((
            Work::Edit(Box::new(Edit { plan, inputs })),
            size,
            clear,
            sizes,
        ))
    }

    /// The number of events: each picture and its previews.
    pub(crate) fn steps(&self) -> u32 {
        self.count.saturating_mul(self.previews + 1)
    }

    /// Makes the event at that position, independently of all others.
    pub(crate) fn step(&self, at: u32) -> Result<ImageEvent, EngineError> {
        let index = at / (self.previews + 1);
        let stage = at % (self.previews + 1);
        let seed = self.seed.wrapping_add(u64::from(index));
        if stage < self.previews {
            let size = preview_size(self.traits.size, stage, self.previews);
            let small = ImageTraits {
                size,
                quality: Quality::Low,
                ..self.traits
            };
            let canvas = cover(&self.canvas(small, seed)?, self.traits.size);
            return Ok(ImageEvent::Preview(encode(
                &canvas,
                self.traits,
                self.compression,
                true,
            )?));
        }
        let canvas = self.canvas(self.traits, seed)?;
        let picture = encode(&canvas, self.traits, self.compression, false)?;
        let input = if index == 0 {
            self.input
        } else {
            ImageUsage::default()
        };
        let output_image = usage::output(self.traits.size, self.traits.quality, self.previews);
        Ok(ImageEvent::Finished {
            picture,
            usage: ImageUsage {
                output_image,
                ..input
            },
        })
    }

    fn canvas(&self, traits: ImageTraits, seed: u64) -> Result<RgbaImage, EngineError> {
        let mut canvas = match &self.work {
            Work::Paint(prompt) => render::paint(prompt, traits, seed)?,
            Work::Edit(edit) => edit.make(traits, seed)?,
        };
        if traits.background == Background::Opaque {
            lay_on(&mut canvas, Colour::WHITE);
        }
        Ok(canvas)
    }
}

/// The size at which preview `index` of `count` is made: each twice as wide as the one before, the
/// last half as wide as the picture, but none less than [`LEAST_SIDE`] on its shorter side.
fn preview_size(full: Pixels, index: u32, count: u32) -> Pixels {
    let shorter = full.width.min(full.height);
    let wanted = (shorter >> count.saturating_sub(index).min(16))
        .max(LEAST_SIDE)
        .min(shorter);
    let side = |side: u32| {
        let scaled = (u64::from(side) * u64::from(wanted)).div_ceil(u64::from(shorter.max(1)));
        u32::try_from(scaled).unwrap_or(side).max(1)
    };
    Pixels::new(side(full.width), side(full.height))
}

const MOST_PREVIEWS: u32 = 3;
const LEAST_SIDE: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_double_up_to_half_the_size() {
        let full = Pixels::new(1024, 512);
        let sizes = [0, 1, 2].map(|index| preview_size(full, index, 3));
        assert_eq!(
            sizes,
            [
                Pixels::new(128, 64),
                Pixels::new(256, 128),
                Pixels::new(512, 256)
            ]
        );
        assert_eq!(preview_size(full, 0, 1), Pixels::new(512, 256));
    }

    #[test]
    fn small_pictures_are_not_made_smaller_than_is_of_use() {
        assert_eq!(
            preview_size(Pixels::new(100, 100), 0, 2),
            Pixels::new(64, 64)
        );
        assert_eq!(
            preview_size(Pixels::new(40, 400), 0, 2),
            Pixels::new(40, 400)
        );
    }
}
