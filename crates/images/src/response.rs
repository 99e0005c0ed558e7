//! The reply to a request that was not streamed (spec §2.3, wire-reference §4.1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{ErrorBody, ErrorDetail, Object};

use crate::request::{Background, OutputFormat, Quality};

wire::read_objects!(Failed);

/// The pictures that were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// When they were made, in Unix seconds.
    pub created: i64,
    /// What is behind what is seen; never `auto`.
    pub background: Background,
    /// The pictures.
    pub data: Vec<Image>,
    /// Their encoding.
    pub output_format: OutputFormat,
    /// How much effort was spent; never `auto`.
    pub quality: Quality,
    /// Width and height in pixels, as made: `1254x1254`.
    pub size: String,
    /// What it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// One picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// The file: base64 of the standard alphabet, padded, without line breaks.
    pub b64_json: String,
    /// A UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_id: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Image {
    /// The picture of a file, with its UUID.
    #[must_use]
    pub fn new(file: &[u8], generation_id: String) -> Self {
        Self { b64_json: STANDARD.encode(file), generation_id: Some(generation_id), extra: Object::new() }
    }
}

/// Tokens used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens of the prompt and of the pictures to start from.
    pub input_tokens: u64,
    /// What they were for. Absent is read as none.
    #[serde(default)]
    pub input_tokens_details: TokensDetails,
    /// Tokens of the pictures made, previews included.
    pub output_tokens: u64,
    /// What they were for. Absent is read as none.
    #[serde(default)]
    pub output_tokens_details: TokensDetails,
    /// Both.
    pub total_tokens: u64,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What tokens were for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokensDetails {
    /// Pictures.
    #[serde(default)]
    pub image_tokens: u64,
    /// Text.
    #[serde(default)]
    pub text_tokens: u64,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Usage {
    /// The usage of a prompt and pictures of so many tokens.
    #[must_use]
    pub fn new(input: TokensDetails, output: TokensDetails) -> Self {
        let (input_tokens, output_tokens) = (input.total(), output.total());
        Self {
            input_tokens,
            input_tokens_details: input,
            output_tokens,
            output_tokens_details: output,
            total_tokens: input_tokens.saturating_add(output_tokens),
            extra: Object::new(),
        }
    }

    /// Adds the share of another picture.
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
    /// So many tokens for pictures, and so many for text.
    #[must_use]
    pub fn new(image_tokens: u64, text_tokens: u64) -> Self {
        Self { image_tokens, text_tokens, extra: Object::new() }
    }

    fn total(&self) -> u64 {
        self.image_tokens.saturating_add(self.text_tokens)
    }

    fn add(&mut self, share: &Self) {
        self.image_tokens = self.image_tokens.saturating_add(share.image_tokens);
        self.text_tokens = self.text_tokens.saturating_add(share.text_tokens);
        self.extra.extend(share.extra.clone());
    }
}

/// What a server answers, whatever its status: pictures, or an `error` in their place (spec §2.3).
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each answer, taken apart at once")]
pub enum Reply {
    /// The pictures.
    Pictures(Response),
    /// Why there are none.
    Failure(ErrorBody),
}

impl Reply {
    /// Reads the body of an answer. An `error` decides, even beside `data`; `null` is none.
    ///
    /// # Errors
    /// When the body is neither.
    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        // Reading twice copies no picture; reading into a tree would.
        let Failed { error } = serde_json::from_slice(body)?;
        match error {
            Some(error) => Ok(Self::Failure(ErrorBody { error })),
            None => serde_json::from_slice(body).map(Self::Pictures),
        }
    }
}

/// The one member that tells a failure.
#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Failed {
    error: Option<ErrorDetail>,
}
