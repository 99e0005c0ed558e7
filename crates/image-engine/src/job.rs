//! The work of one request: its preparation, and its pictures one step at a time.
//!
//! # Memory
//! With `R` the pixels of the references and the mask in their files and `P` those of the output, at 4 bytes each, the
//! work takes at most `R + 2 P` beside the encoded file: the references, the canvas, and one layer on its way onto the
//! canvas. A file of 16 bits a channel takes twice its pixels while it is decoded, a progressive JPEG its
//! coefficients, and libwebp makes a copy of the canvas for itself.

use engine::{
    Background, EngineError, ImageEvent, ImageFormat, ImageRequest, ImageTraits, ImageUsage, Pixels, Quality, Size,
};
use image::RgbaImage;

use crate::edit::{Edit, Plan};
use crate::encode::{Effort, Encoding, encode};
use crate::fit::cover;
use crate::inputs::{Files, check_size, nearest_size};
use crate::prompt::Prompt;
use crate::{preview, render, usage};

/// An accepted request with everything that its pictures are made of.
pub(crate) struct Job {
    work: Work,
    traits: ImageTraits,
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
            None => getrandom::u64().map_err(|why| EngineError::Internal(format!("no random seed: {why}")))?,
        };
        let (work, size, clear, sizes) = match request.edit.take() {
            Some(edit) => Self::open_edit(&request, Files::read(edit)?)?,
            None => Self::open_painting(&request)?,
        };
        let traits = ImageTraits {
            size,
            quality: request.quality.unwrap_or(Quality::Medium),
            background: background(request.background, clear, request.format),
            format: request.format,
        };
        Ok(Self {
            work,
            traits,
            compression: request.compression,
            count: request.count.max(1),
            previews: request.previews.min(MOST_PREVIEWS),
            seed,
            input: usage::input(&request.prompt, &sizes),
        })
    }

    fn open_painting(request: &ImageRequest) -> Result<(Work, Pixels, bool, Vec<Pixels>), EngineError> {
        let prompt = Prompt::read(&request.prompt);
        let size = match request.size {
            Size::Auto => nearest_size(prompt.auto_size()),
            Size::Exact(size) => check_size(size)?,
        };
        let clear = prompt.cut_out;
        Ok((Work::Paint(prompt), size, clear, Vec::new()))
    }

    fn open_edit(request: &ImageRequest, files: Files) -> Result<(Work, Pixels, bool, Vec<Pixels>), EngineError> {
        let sizes = files.sizes();
        let masked = files.has_mask();
        let mut plan = Plan::read(&request.prompt, files.references(), masked);
        let size = match request.size {
            Size::Auto if plan.turns() && !masked => nearest_size(Pixels::new(files.size().height, files.size().width)),
            Size::Auto => nearest_size(files.size()),
            Size::Exact(size) => check_size(size)?,
        };
        let inputs = files.decode(size)?;
        let opaque = inputs.is_opaque();
        if request.background == Some(Background::Transparent) && opaque && !masked {
            plan.clear();
        }
        let clear = plan.clears() || !opaque && (masked || !plan.backs());
        Ok((Work::Edit(Box::new(Edit::new(plan, inputs))), size, clear, sizes))
    }

    pub(crate) fn traits(&self) -> ImageTraits {
        self.traits
    }

    /// The number of events: each picture and its previews.
    pub(crate) fn steps(&self) -> u32 {
        self.count.saturating_mul(self.previews + 1)
    }

    /// Makes the event at that position, independently of all others.
    pub(crate) fn step(&self, at: u32) -> Result<ImageEvent, EngineError> {
        let (index, stage) = (at / (self.previews + 1), at % (self.previews + 1));
        let seed = self.seed.wrapping_add(u64::from(index));
        if stage < self.previews {
            let small = self.canvas(preview::size(self.traits.size, stage, self.previews), Quality::Low, seed)?;
            let canvas = cover(&small, self.traits.size);
            drop(small);
            return Ok(ImageEvent::Preview(encode(&canvas, self.encoding(Effort::Quick))?));
        }
        let canvas = self.canvas(self.traits.size, self.traits.quality, seed)?;
        let picture = encode(&canvas, self.encoding(self.traits.quality.into()))?;
        Ok(ImageEvent::Finished { picture, usage: self.usage(index) })
    }

    fn canvas(&self, size: Pixels, detail: Quality, seed: u64) -> Result<RgbaImage, EngineError> {
        let background = self.traits.background;
        let mut canvas = match &self.work {
            Work::Paint(prompt) => render::paint(prompt, size, background, detail, seed)?,
            Work::Edit(edit) => edit.make(size, background, detail, seed)?,
        };
        if background == Background::Opaque {
            flatten(&mut canvas);
        }
        Ok(canvas)
    }

    fn encoding(&self, effort: Effort) -> Encoding {
        let alpha = self.traits.background == Background::Transparent;
        Encoding { format: self.traits.format, compression: self.compression, alpha, effort }
    }

    fn usage(&self, index: u32) -> ImageUsage {
        let input = if index == 0 { self.input } else { ImageUsage::default() };
        ImageUsage { output_image: usage::output(self.traits.size, self.traits.quality, self.previews), ..input }
    }
}

/// The background: as requested, or else as the prompt implies. JPEG has no alpha.
fn background(asked: Option<Background>, clear: bool, format: ImageFormat) -> Background {
    let implied = if clear { Background::Transparent } else { Background::Opaque };
    if format == ImageFormat::Jpeg { Background::Opaque } else { asked.unwrap_or(implied) }
}

/// Composes the picture onto white.
fn flatten(canvas: &mut RgbaImage) {
    for pixel in canvas.pixels_mut().filter(|pixel| pixel[3] != u8::MAX) {
        let alpha = u16::from(pixel[3]);
        for channel in &mut pixel.0[..3] {
            *channel = ((u16::from(*channel) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        }
        pixel[3] = u8::MAX;
    }
}

const MOST_PREVIEWS: u32 = 3;
