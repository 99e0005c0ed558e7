//! Images (<https://platform.openai.com/docs/api-reference/images>): converts requests to the
//! neutral form and engine events to protocol events.

use engine::{
    Background, ImageEdit, ImageEvent, ImageFormat, ImageRequest, ImageTraits, ImageUsage, Pixels,
    Quality, Size,
};
use images::{Encoder, Event, Generation, Operation, Settled, TokensDetails, Usage};
use uuid::Builder;
use vendor::in_stream;
use wire::ApiError;

/// Converts a request to the neutral form. `edit` holds the input images of an edit.
///
/// The request has been validated; a value that the validator would reject counts as absent here.
#[must_use]
pub fn image_request(
    generation: &Generation,
    model: &str,
    edit: Option<ImageEdit>,
) -> ImageRequest {
    let format = generation
        .output_format
        .as_ref()
        .and_then(|word| ImageFormat::named(word.as_str()));
    ImageRequest {
        model: model.to_owned(),
        prompt: generation.prompt.clone(),
        count: to_u32(generation.n).unwrap_or(1),
        size: generation
            .size
            .as_deref()
            .map_or(Size::Exact(DEFAULT_SIZE), size),
        quality: generation
            .quality
            .as_ref()
            .and_then(|word| Quality::named(word.as_str())),
        background: generation
            .background
            .as_ref()
            .and_then(|word| Background::named(word.as_str())),
        format: format.unwrap_or_default(),
        compression: to_u32(generation.output_compression)
            .and_then(|percent| u8::try_from(percent).ok()),
        previews: if generation.streams() {
            to_u32(generation.partial_images).unwrap_or(0)
        } else {
            0
        },
        seed: generation.seed,
        edit,
    }
}

/// The encoder of one answer, from engine events to protocol events.
#[derive(Debug)]
pub struct Pictures {
    /// `None` once the answer has failed.
    encoder: Option<Encoder>,
    bits: u128,
    remaining: u32,
}

impl Pictures {
    /// Creates the encoder of an answer with `count` images of these traits; `bits` are random.
    #[must_use]
    pub fn new(operation: Operation, traits: &ImageTraits, count: u32, bits: u128) -> Self {
        Self {
            encoder: Some(Encoder::new(operation, protocol_traits(traits))),
            bits,
            remaining: count,
        }
    }

    /// Returns the protocol event for an engine event. Returns `None` for an unknown engine event,
    /// and after a failure. `now` is in Unix seconds.
    pub fn event(&mut self, event: &ImageEvent, now: i64) -> Option<Event> {
        let id = self.id();
        let encoder = self.encoder.as_mut()?;
        match event {
            ImageEvent::Preview(picture) => Some(encoder.preview(picture, now)),
            ImageEvent::Finished { picture, usage } => {
                self.remaining = self.remaining.saturating_sub(1);
                Some(encoder.completed(picture, id, protocol_usage(*usage), now))
            }
            _ => None,
        }
    }

    /// Returns the failure event that ends the stream, or `None` if the answer has failed before.
    pub fn fail(&mut self, error: &ApiError) -> Option<Event> {
        self.encoder
            .take()
            .map(|encoder| encoder.fail(&in_stream(error)))
    }

    /// Returns true if every image is finished.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.remaining == 0
    }

    /// Derives a distinct UUID for the next image.
    fn id(&self) -> String {
        let bits = self.bits ^ u128::from(self.remaining);
        Builder::from_random_bytes(bits.to_be_bytes())
            .into_uuid()
            .to_string()
    }
}

fn protocol_traits(traits: &ImageTraits) -> Settled {
    Settled {
        size: format!("{}x{}", traits.size.width, traits.size.height),
        quality: traits.quality.as_str().into(),
        background: traits.background.as_str().into(),
        output_format: traits.format.as_str().into(),
    }
}

fn protocol_usage(usage: ImageUsage) -> Usage {
    Usage::new(
        TokensDetails::new(usage.input_image, usage.input_text),
        TokensDetails::new(usage.output_image, 0),
    )
}

/// Parses `auto` or `<width>x<height>`.
fn size(text: &str) -> Size {
    let exact = || {
        let (width, height) = text.split_once('x')?;
        Some(Pixels::new(width.parse().ok()?, height.parse().ok()?))
    };
    exact().map_or(Size::Auto, Size::Exact)
}

fn to_u32(number: Option<i64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

/// The size of images for requests without a size.
const DEFAULT_SIZE: Pixels = Pixels::new(1254, 1254);
