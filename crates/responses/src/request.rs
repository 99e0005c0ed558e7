//! The request: `POST /v1/responses` (spec §4.2, wire-reference §1.1).

mod item;
mod options;
mod tool;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Json, Object, TextOr, Violations};

pub use self::item::{
    AudioPart, CustomToolCall, CustomToolCallOutput, FilePart, FunctionCall, FunctionCallOutput, ImagePart, Item,
    ItemReference, Message, Part, Phase, Reasoning, ReasoningPart, RefusalPart, Role, TextPart,
};
pub use self::options::{
    Effort, Format, JsonSchemaFormat, PlainFormat, ReasoningOptions, Summary, TextOptions, Truncation, Verbosity,
};
pub use self::tool::{AllowedTools, FunctionChoice, FunctionTool, Tool, ToolChoice, ToolChoiceObject, ToolMode};

/// A request for a response.
///
/// Optional fields are `None` when absent or null; what is not named here is kept in `extra`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The model.
    pub model: String,
    /// The conversation, oldest first; the caller sends all of it each time. A text is one message of the user.
    pub input: TextOr<Item>,
    /// Instructions above the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The most tokens to generate, thoughts included.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<i64>,
    /// Whether to answer as a stream of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// How to stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
    /// What the model may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether it may, must or must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether several calls at once are welcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The most calls of hosted tools.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tool_calls: Option<i64>,
    /// 0 to 2: how freely to draw the next token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// 0 to 1: draw among the likeliest tokens that make up this share.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// −2 to 2: against tokens that occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2, max = 2))]
    pub presence_penalty: Option<f64>,
    /// −2 to 2: against tokens by how often they occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2, max = 2))]
    pub frequency_penalty: Option<f64>,
    /// How many alternatives of each token to tell.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub top_logprobs: Option<i64>,
    /// The form of the answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<TextOptions>,
    /// Whether and how to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningOptions>,
    /// What more to tell; see [`Request::includes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<String>>,
    /// Up to 16 notes of the caller's own, repeated in the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// Whether to keep the response; nothing is ever kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<bool>,
    /// The response to go on from; not served, nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_response_id: Option<String>,
    /// The stored conversation to go on with; not served, nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Json>,
    /// A stored prompt; not served, nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Json>,
    /// Whether to answer later; `true` is not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// What to do with a conversation that is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
    /// The class of service asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// The caller's own name for its end user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The newer name of `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safety_identifier: Option<String>,
    /// Requests with the same key are likely to share a cached prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache_key: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Request {
    /// The word of `include` that asks for the seal on the thoughts.
    pub const ENCRYPTED_REASONING: &'static str = "reasoning.encrypted_content";
    /// The word of `include` that asks how likely each token was.
    pub const LOGPROBS: &'static str = "message.output_text.logprobs";

    /// Reads a request body.
    ///
    /// # Errors
    /// Everything that keeps the body from being a request, with paths.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// Whether a stream is asked for.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.stream == Some(true)
    }

    /// Whether the deltas of the stream are to be padded.
    #[must_use]
    pub fn includes_obfuscation(&self) -> bool {
        self.stream_options.as_ref().and_then(|options| options.include_obfuscation) == Some(true)
    }

    /// Whether `include` has the word.
    #[must_use]
    pub fn includes(&self, word: &str) -> bool {
        self.include.iter().flatten().any(|included| included == word)
    }
}

/// How to stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamOptions {
    /// Whether to pad the deltas, so that their sizes tell less about their texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_obfuscation: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}
