//! The body of an unstreamed response. See <https://platform.openai.com/docs/api-reference/images>.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{ErrorBody, ErrorDetail, Object};

use crate::request::{Background, OutputFormat, Quality};

wire::open_structs! {
    /// The generated images.
    pub struct Response {
        /// Creation time, in Unix seconds.
        pub created: i64,
        /// The background; never `auto`.
        pub background: Background,
        /// The images.
        pub data: Vec<Image>,
        /// The file format.
        pub output_format: OutputFormat,
        /// The quality; never `auto`.
        pub quality: Quality,
        /// Actual width and height in pixels, such as `1254x1254`.
        pub size: String,
        /// Token usage.
        pub usage: Option<Usage>,
    }
}

/// One image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Image {
    /// The file as base64: standard alphabet, padded, without line breaks.
    pub b64_json: String,
    /// A UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_id: Option<String>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

impl Image {
    /// Creates an image from the bytes of a file and a UUID.
    #[must_use]
    pub fn new(file: &[u8], generation_id: String) -> Self {
        Self {
            b64_json: STANDARD.encode(file),
            generation_id: Some(generation_id),
            extra: Object::new(),
        }
    }
}

/// Token usage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt and the reference images.
    pub input_tokens: u64,
    /// Breakdown of `input_tokens`. Absent counts are deserialized as 0.
    #[serde(default)]
    pub input_tokens_details: TokensDetails,
    /// Tokens of the generated images, including previews.
    pub output_tokens: u64,
    /// Breakdown of `output_tokens`. Absent counts are deserialized as 0.
    #[serde(default)]
    pub output_tokens_details: TokensDetails,
    /// Sum of input and output tokens.
    pub total_tokens: u64,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_structs! {
    /// Breakdown of a token count.
    #[derive(Default, Eq)]
    pub struct TokensDetails {
        /// Tokens of images.
        #[serde(default)]
        pub image_tokens: u64,
        /// Tokens of text.
        #[serde(default)]
        pub text_tokens: u64,
    }
}

impl Usage {
    /// Creates a usage from the breakdowns of input and output.
    #[must_use]
    pub fn new(input: TokensDetails, output: TokensDetails) -> Self {
        let input_tokens = input.total();
        let output_tokens = output.total();
        Self {
            input_tokens,
            input_tokens_details: input,
            output_tokens,
            output_tokens_details: output,
            total_tokens: input_tokens.saturating_add(output_tokens),
            extra: Object::new(),
        }
    }

    /// Adds the share of another image.
    pub fn add(&mut self, share: &Self) {
        self.input_tokens = self.input_tokens.saturating_add(share.input_tokens);
        self.input_tokens_details.add(&share.input_tokens_details);
        self.output_tokens = self.output_tokens.saturating_add(share.output_tokens);
        self.output_tokens_details.add(&share.output_tokens_details);
        self.total_tokens = self.total_tokens.saturating_add(share.total_tokens);
        self.extra.extend(share.extra.clone());
    }
}

impl TokensDetails {
    fn total(&self) -> u64 {
        self.image_tokens.saturating_add(self.text_tokens)
    }

    fn add(&mut self, share: &Self) {
        self.image_tokens = self.image_tokens.saturating_add(share.image_tokens);
        self.text_tokens = self.text_tokens.saturating_add(share.text_tokens);
        self.extra.extend(share.extra.clone());
    }
}

/// The body of a server's response, whatever its status: images or an error.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one per response, destructured immediately"
)]
pub enum Reply {
    /// The images.
    Pictures(Response),
    /// The error.
    Failure(ErrorBody),
}

impl Reply {
    /// Parses a response body. A non-null `error` takes precedence, even if there is `data`.
    ///
    /// # Errors
    /// Returns an error if the body has neither form.
    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        // Parsing twice copies no image data; parsing into a tree would.
        let Failed { error } = serde_json::from_slice(body)?;
        match error {
            Some(error) => Ok(Self::Failure(ErrorBody { error })),
            None => serde_json::from_slice(body).map(Self::Pictures),
        }
    }
}

wire::read_objects! {
    /// The field that marks a failure.
    struct Failed {
        error: Option<ErrorDetail>,
    }
}
