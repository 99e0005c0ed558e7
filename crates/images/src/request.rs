//! Requests for images: generations and edits. See
//! <https://platform.openai.com/docs/api-reference/images>.

use std::fmt;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::Violations;

use crate::source::Source;

wire::open_structs! {
    /// A request for images from a prompt. Null is the same as absent.
    #[derive(Default)]
    pub struct Generation {
        /// The prompt, 1 to 32,000 characters.
        pub prompt: String,
        /// The id of the model. `None` selects the gateway's default.
        pub model: Option<String>,
        /// Number of images, 1 to 10. `None` means 1.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 1, max = 10))]
        pub n: Option<i64>,
        /// `auto`, or width and height in pixels such as `1024x1536`. `None` means 1254x1254.
        pub size: Option<String>,
        /// The quality.
        pub quality: Option<Quality>,
        /// The background of the image.
        pub background: Option<Background>,
        /// The file format. `None` means PNG.
        pub output_format: Option<OutputFormat>,
        /// Compression quality of JPEG and WebP, 0 to 100.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 0, max = 100))]
        pub output_compression: Option<i64>,
        /// True to stream the response as server-sent events.
        pub stream: Option<bool>,
        /// Maximum number of previews in a stream, 0 to 3.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 0, max = 3))]
        pub partial_images: Option<i64>,
        /// The encoding of the images in the response. Only base64 is supported.
        pub response_format: Option<ResponseFormat>,
        /// Seed for reproducible images, where the engine supports it. An extension of the
        /// protocol.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        pub seed: Option<i64>,
    }
}

/// A request for edited images: a [`Generation`] with reference images and a mask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Edit {
    /// The reference images, 1 to 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Reference>>,
    /// A single reference image. Ignored if `images` is present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Source>,
    /// The mask: a PNG whose transparent area may be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<Mask>,
    /// Further files of a form, which only a server may know. The JSON form has none.
    #[serde(skip)]
    pub files: Vec<FormFile>,
    /// The prompt and the output options.
    #[serde(flatten)]
    pub generation: Generation,
}

/// A file of a form that is neither an image nor a mask.
#[derive(Clone, PartialEq, Eq)]
pub struct FormFile {
    /// The name of the part.
    pub name: String,
    /// The name of the file.
    pub filename: String,
    /// The media type.
    pub media_type: String,
    /// The content.
    pub bytes: Bytes,
}

/// Does not show the content.
impl fmt::Debug for FormFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FormFile({:?}, {} bytes)", self.name, self.bytes.len())
    }
}

wire::open_structs! {
    /// A reference image.
    #[derive(Default)]
    pub struct Reference {
        /// A data URL of a PNG, JPEG or WebP, or a public https URL.
        pub image_url: Option<Source>,
        /// The id of a stored file. Rejected: nothing is stored.
        pub file_id: Option<String>,
    }
}

impl From<Source> for Reference {
    fn from(source: Source) -> Self {
        Self {
            image_url: Some(source),
            ..Self::default()
        }
    }
}

/// A mask, in the form of a [`Reference`]. Only a data URL of a PNG is supported.
pub type Mask = Reference;

impl Generation {
    /// Parses a request body.
    ///
    /// # Errors
    /// Returns every violation of the request schema, each with its path.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// Returns the number of requested images.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.n.unwrap_or(1)
    }

    /// Returns true if the client requested a stream.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.stream == Some(true)
    }
}

impl Edit {
    /// Parses a request body.
    ///
    /// # Errors
    /// Returns every violation of the request schema, each with its path.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// Returns the reference images, in order.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        let listed = self
            .images
            .iter()
            .flatten()
            .filter_map(|image| image.image_url.as_ref());
        listed.chain(self.image.as_ref().filter(|_| self.images.is_none()))
    }

    /// Returns the mask.
    #[must_use]
    pub fn mask_source(&self) -> Option<&Source> {
        self.mask.as_ref()?.image_url.as_ref()
    }

    /// Splits the request into its options, the reference images in order, and the mask. Leaves the
    /// [`files`](Self::files) out.
    #[must_use]
    pub fn into_sources(self) -> (Generation, Vec<Source>, Option<Source>) {
        let sources = match self.images {
            Some(images) => images
                .into_iter()
                .filter_map(|image| image.image_url)
                .collect(),
            None => self.image.into_iter().collect(),
        };
        (
            self.generation,
            sources,
            self.mask.and_then(|mask| mask.image_url),
        )
    }
}

wire::open_enum! {
    /// The quality of an image.
    pub enum Quality {
        /// Low quality.
        Low = "low",
        /// Medium quality.
        Medium = "medium",
        /// High quality.
        High = "high",
        /// Extra-high quality.
        XHigh = "xhigh",
        /// Maximum quality.
        Max = "max",
        /// The model decides.
        Auto = "auto",
    }
}

wire::open_enum! {
    /// The background of the image.
    pub enum Background {
        /// A transparent background.
        Transparent = "transparent",
        /// An opaque background.
        Opaque = "opaque",
        /// The model decides.
        Auto = "auto",
    }
}

wire::open_enum! {
    /// The file format of an image.
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
    /// The encoding of an image in the response.
    pub enum ResponseFormat {
        /// Inline base64.
        B64Json = "b64_json",
    }
}
