//! Requests for pictures: from a prompt, and from other pictures (spec §4.5, §4.6; wire-reference §4.1, §4.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Object, Violations};

use crate::source::Source;

/// A request for pictures from a prompt. `null` is the same as absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generation {
    /// What is to be seen: 1 to 32,000 characters.
    pub prompt: String,
    /// Who is to make it. Absent: the gateway's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many pictures, 1 to 10. Absent: 1.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub n: Option<i64>,
    /// `auto`, or width and height in pixels such as `1024x1536`. Absent: 1254x1254.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// How much effort to spend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// What is behind what is seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// The encoding of the pictures. Absent: PNG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_format: Option<OutputFormat>,
    /// How well JPEG and WebP keep the picture: 0 to 100.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub output_compression: Option<i64>,
    /// Whether to stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// How many previews a stream may have: 0 to 3.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3))]
    pub partial_images: Option<i64>,
    /// How the pictures travel: base64 alone is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// The same seed and request give the same picture, where the engine can. An extension.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A request for pictures from other pictures: a [`Generation`] with references and a mask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edit {
    /// The pictures to start from: 1 to 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Reference>>,
    /// Another way to name a single picture. Read when `images` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Source>,
    /// Where it may be changed: the transparent part of a PNG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<Mask>,
    /// What is to be made of them.
    #[serde(flatten)]
    pub generation: Generation,
}

/// A picture to start from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// A Data URL of a PNG, JPEG or WebP, or a public https address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<Source>,
    /// A stored file; never served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl From<Source> for Reference {
    fn from(source: Source) -> Self {
        Self { image_url: Some(source), ..Self::default() }
    }
}

/// A mask, told as a [`Reference`] is; a Data URL of a PNG alone is served.
pub type Mask = Reference;

impl Generation {
    /// Reads a request body.
    ///
    /// # Errors
    /// Everything that keeps the body from being a request, with paths.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// How many pictures are asked for.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.n.unwrap_or(1)
    }

    /// Whether a stream is asked for.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.stream == Some(true)
    }
}

impl Edit {
    /// Reads a request body.
    ///
    /// # Errors
    /// Everything that keeps the body from being a request, with paths.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// The pictures to start from, in order.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        let listed = self.images.iter().flatten().filter_map(|image| image.image_url.as_ref());
        listed.chain(self.image.as_ref().filter(|_| self.images.is_none()))
    }

    /// Where it may be changed.
    #[must_use]
    pub fn mask_source(&self) -> Option<&Source> {
        self.mask.as_ref()?.image_url.as_ref()
    }

    /// The request without its pictures, the pictures to start from in order, and the mask.
    #[must_use]
    pub fn into_sources(self) -> (Generation, Vec<Source>, Option<Source>) {
        let sources = match self.images {
            Some(images) => images.into_iter().filter_map(|image| image.image_url).collect(),
            None => self.image.into_iter().collect(),
        };
        (self.generation, sources, self.mask.and_then(|mask| mask.image_url))
    }
}

wire::open_enum! {
    /// How much effort to spend on a picture.
    pub enum Quality {
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
        /// More than much.
        XHigh = "xhigh",
        /// All there is.
        Max = "max",
        /// As the model sees fit.
        Auto = "auto",
    }
}

wire::open_enum! {
    /// What is behind what is seen.
    pub enum Background {
        /// Nothing.
        Transparent = "transparent",
        /// Something.
        Opaque = "opaque",
        /// As the model sees fit.
        Auto = "auto",
    }
}

wire::open_enum! {
    /// The encoding of a picture.
    pub enum OutputFormat {
        /// PNG.
        Png = "png",
        /// JPEG.
        Jpeg = "jpeg",
        /// WebP.
        Webp = "webp",
    }
}

wire::open_enum! {
    /// How a picture travels.
    pub enum ResponseFormat {
        /// As base64 within the reply.
        B64Json = "b64_json",
    }
}
