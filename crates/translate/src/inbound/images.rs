//! Images: requests to neutral, and what an engine makes of them to events (spec §4.5, §4.6, §6.3).

use engine::{
    Background, ImageEdit, ImageEvent, ImageFormat, ImageRequest, ImageTraits, ImageUsage, Pixels, Quality, Size,
};
use images::{Encoder, Event, Generation, Operation, Settled, TokensDetails, Usage};
use uuid::Builder;
use wire::ApiError;

use crate::error::in_stream;

/// Says a request in neutral words. `edit` is what an edit starts from.
///
/// The request keeps every rule: what a rule forbids is taken for absent here.
#[must_use]
pub fn image_request(generation: &Generation, model: &str, edit: Option<ImageEdit>) -> ImageRequest {
    ImageRequest {
        model: model.to_owned(),
        prompt: generation.prompt.clone(),
        count: small(generation.n).unwrap_or(1),
        size: generation.size.as_deref().map_or(Size::Exact(USUAL_SIZE), size),
        quality: generation.quality.as_ref().and_then(quality),
        background: generation.background.as_ref().and_then(background),
        format: generation.output_format.as_ref().map_or(ImageFormat::Png, format),
        compression: small(generation.output_compression).and_then(|percent| u8::try_from(percent).ok()),
        previews: if generation.streams() { small(generation.partial_images).unwrap_or(0) } else { 0 },
        seed: generation.seed,
        edit,
    }
}

/// The events of one answer, made from what the engine does.
#[derive(Debug)]
pub struct Pictures {
    /// Nothing once the answer has failed.
    encoder: Option<Encoder>,
    bits: u128,
    left: u32,
}

impl Pictures {
    /// The answer with `count` pictures of these traits, before any of them; `bits` are random.
    #[must_use]
    pub fn new(operation: Operation, traits: &ImageTraits, count: u32, bits: u128) -> Self {
        Self { encoder: Some(Encoder::new(operation, settled(traits))), bits, left: count }
    }

    /// The event of one thing that the engine does; nothing when it is none of the protocol's. `now` is in Unix
    /// seconds.
    pub fn event(&mut self, event: &ImageEvent, now: i64) -> Option<Event> {
        let id = self.id();
        let encoder = self.encoder.as_mut()?;
        match event {
            ImageEvent::Preview(picture) => Some(encoder.preview(picture, now)),
            ImageEvent::Finished { picture, usage } => {
                self.left = self.left.saturating_sub(1);
                Some(encoder.completed(picture, id, protocol_usage(*usage), now))
            }
            _ => None,
        }
    }

    /// The event of the failure that ends the stream; nothing when it has failed before.
    pub fn fail(&mut self, error: &ApiError) -> Option<Event> {
        self.encoder.take().map(|encoder| encoder.fail(&in_stream(error)))
    }

    /// Whether every picture is there.
    #[must_use]
    pub fn are_all_there(&self) -> bool {
        self.left == 0
    }

    /// A UUID of its own for the next picture.
    fn id(&self) -> String {
        let bits = self.bits ^ u128::from(self.left);
        Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string()
    }
}

fn settled(traits: &ImageTraits) -> Settled {
    Settled {
        size: format!("{}x{}", traits.size.width, traits.size.height),
        quality: match traits.quality {
            Quality::Low => images::Quality::Low,
            Quality::Medium => images::Quality::Medium,
            Quality::High => images::Quality::High,
            Quality::XHigh => images::Quality::XHigh,
            Quality::Max => images::Quality::Max,
        },
        background: match traits.background {
            Background::Transparent => images::Background::Transparent,
            Background::Opaque => images::Background::Opaque,
        },
        output_format: match traits.format {
            ImageFormat::Png => images::OutputFormat::Png,
            ImageFormat::Jpeg => images::OutputFormat::Jpeg,
            ImageFormat::Webp => images::OutputFormat::Webp,
        },
    }
}

fn protocol_usage(usage: ImageUsage) -> Usage {
    Usage::new(TokensDetails::new(usage.input_image, usage.input_text), TokensDetails::new(usage.output_image, 0))
}

/// `auto`, or `<width>x<height>`.
fn size(text: &str) -> Size {
    let exact = || {
        let (width, height) = text.split_once('x')?;
        Some(Pixels::new(width.parse().ok()?, height.parse().ok()?))
    };
    exact().map_or(Size::Auto, Size::Exact)
}

fn quality(word: &images::Quality) -> Option<Quality> {
    match word {
        images::Quality::Low => Some(Quality::Low),
        images::Quality::Medium => Some(Quality::Medium),
        images::Quality::High => Some(Quality::High),
        images::Quality::XHigh => Some(Quality::XHigh),
        images::Quality::Max => Some(Quality::Max),
        _ => None,
    }
}

fn background(word: &images::Background) -> Option<Background> {
    match word {
        images::Background::Transparent => Some(Background::Transparent),
        images::Background::Opaque => Some(Background::Opaque),
        _ => None,
    }
}

fn format(word: &images::OutputFormat) -> ImageFormat {
    match word {
        images::OutputFormat::Jpeg => ImageFormat::Jpeg,
        images::OutputFormat::Webp => ImageFormat::Webp,
        _ => ImageFormat::Png,
    }
}

fn small(number: Option<i64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

/// The size of pictures for which none is asked (spec §4.5).
const USUAL_SIZE: Pixels = Pixels::new(1254, 1254);
