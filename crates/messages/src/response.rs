//! The replies: a message that was not streamed, and a count of tokens (wire-reference §3.3, §3.6).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use wire::{Json, Object};

/// What the model said and called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// `msg_…`.
    pub id: String,
    /// `message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `assistant`.
    pub role: String,
    /// The model that the caller asked for.
    pub model: String,
    /// The blocks, in the order in which they were made.
    pub content: Vec<Block>,
    /// Why it ended; null at the beginning of a stream alone.
    pub stop_reason: Option<StopReason>,
    /// The stop text that came up, when that is why.
    pub stop_sequence: Option<String>,
    /// What it took.
    pub usage: Usage,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Message {
    /// The value of `type`.
    pub const KIND: &'static str = "message";
    /// The value of `role`.
    pub const ROLE: &'static str = "assistant";
}

wire::tagged! {
    /// One block of what the model said and called.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Block("type") {
        /// Text.
        Text(TextBlock) = "text",
        /// A call.
        ToolUse(ToolUseBlock) = "tool_use",
        /// What it thought.
        Thinking(ThinkingBlock) = "thinking",
        /// What it thought, sealed.
        RedactedThinking(RedactedThinkingBlock) = "redacted_thinking",
    }
}

/// Text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUseBlock {
    /// The id by which the result refers to the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its input, a JSON object.
    pub input: Json,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What the model thought.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingBlock {
    /// The text of it.
    pub thinking: String,
    /// The model's own seal on it, by which it knows it again; empty when there is none.
    #[serde(default)]
    pub signature: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What the model thought, sealed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RedactedThinkingBlock {
    /// The sealed thoughts; only the model can read them.
    pub data: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// Why a message ended.
    pub enum StopReason {
        /// The model was done.
        EndTurn = "end_turn",
        /// The cap on the output.
        MaxTokens = "max_tokens",
        /// A stop text of the caller's came up.
        StopSequence = "stop_sequence",
        /// The model waits for what comes of its calls.
        ToolUse = "tool_use",
        /// A filter, or the model itself, refused.
        Refusal = "refusal",
        /// The model asks to be called again with what it said so far.
        PauseTurn = "pause_turn",
        /// The model's context is full.
        ContextWindowExceeded = "model_context_window_exceeded",
    }
}

impl StopReason {
    /// Whether the model was cut off rather than done, so that its last call may be incomplete.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::MaxTokens | Self::ContextWindowExceeded | Self::Refusal)
    }
}

/// Tokens used. The four counts are always written; absent or null counts are read as 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt, without those written to or read from a cache.
    #[serde(deserialize_with = "or_zero")]
    pub input_tokens: u64,
    /// Tokens of the prompt that were written to a cache.
    #[serde(deserialize_with = "or_zero")]
    pub cache_creation_input_tokens: u64,
    /// Tokens of the prompt that were read from a cache.
    #[serde(deserialize_with = "or_zero")]
    pub cache_read_input_tokens: u64,
    /// Tokens of the answer, thoughts included.
    #[serde(deserialize_with = "or_zero")]
    pub output_tokens: u64,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Usage {
    /// The usage of a prompt and an answer of so many tokens, without a cache.
    #[must_use]
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, ..Self::default() }
    }
}

/// The reply to `POST /v1/messages/count_tokens`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCount {
    /// How many tokens the prompt has.
    pub input_tokens: u64,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

fn or_zero<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}
