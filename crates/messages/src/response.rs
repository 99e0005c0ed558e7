//! Response bodies: an unstreamed message, and a token count. See
//! <https://docs.anthropic.com/en/api/messages>.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Json, Object};

/// A message of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Message {
    /// The id of the message, `msg_…`.
    pub id: String,
    /// The type, `message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The role, `assistant`.
    pub role: String,
    /// The id of the model, as requested.
    pub model: String,
    /// The content blocks, in the order of their creation.
    pub content: Vec<Block>,
    /// The reason why the message ended; only null at the start of a stream.
    pub stop_reason: Option<StopReason>,
    /// The matched stop sequence, if that is the reason.
    pub stop_sequence: Option<String>,
    /// Token usage.
    pub usage: Usage,
    /// Unrecognized fields, kept as received.
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
    /// One content block of the model's output.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Block("type") {
        /// A text block.
        Text(TextBlock) = "text",
        /// A tool call.
        ToolUse(ToolUseBlock) = "tool_use",
        /// Thinking of the model.
        Thinking(ThinkingBlock) = "thinking",
        /// Thinking that only the model can decrypt.
        RedactedThinking(RedactedThinkingBlock) = "redacted_thinking",
    }
}

wire::open_structs! {
    /// A text block.
    #[derive(Default)]
    pub struct TextBlock {
        /// The text.
        pub text: String,
    }

    /// A tool call.
    pub struct ToolUseBlock {
        /// The call id, by which the result refers to the call.
        pub id: String,
        /// The name of the tool.
        pub name: String,
        /// The input, a JSON object.
        pub input: Json,
    }

    /// Thinking of the model.
    #[derive(Default)]
    pub struct ThinkingBlock {
        /// The thinking text.
        pub thinking: String,
        /// Opaque signature of the thinking, by which the model recognizes it in a later turn;
        /// empty without one.
        #[serde(default)]
        pub signature: String,
    }

    /// Thinking of the model that only the model can decrypt.
    pub struct RedactedThinkingBlock {
        /// The encrypted thinking.
        pub data: String,
    }
}

wire::open_enum! {
    /// The reason why a message ended.
    pub enum StopReason {
        /// The model finished its turn.
        EndTurn = "end_turn",
        /// The output limit was reached.
        MaxTokens = "max_tokens",
        /// A stop sequence of the request matched.
        StopSequence = "stop_sequence",
        /// The model is waiting for the results of its calls.
        ToolUse = "tool_use",
        /// A content filter, or the model itself, refused.
        Refusal = "refusal",
        /// The model paused; the client continues by sending the content back.
        PauseTurn = "pause_turn",
        /// The context window is full.
        ContextWindowExceeded = "model_context_window_exceeded",
    }
}

impl StopReason {
    /// Returns true if the model was truncated, so that its last call may be incomplete.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(
            self,
            Self::MaxTokens | Self::ContextWindowExceeded | Self::Refusal
        )
    }
}

/// Token usage. All four counts are always serialized; absent or null counts are deserialized as 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt, excluding those read from or written to a cache.
    #[serde(deserialize_with = "wire::or_default")]
    pub input_tokens: u64,
    /// Tokens of the prompt that were written to a cache.
    #[serde(deserialize_with = "wire::or_default")]
    pub cache_creation_input_tokens: u64,
    /// Tokens of the prompt that were read from a cache.
    #[serde(deserialize_with = "wire::or_default")]
    pub cache_read_input_tokens: u64,
    /// Tokens of the output, including thinking tokens.
    #[serde(deserialize_with = "wire::or_default")]
    pub output_tokens: u64,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

impl Usage {
    /// Creates a usage without cached tokens.
    #[must_use]
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            ..Self::default()
        }
    }
}

wire::open_structs! {
    /// The response body of `POST /v1/messages/count_tokens`.
    #[derive(Eq)]
    pub struct TokenCount {
        /// Number of tokens in the prompt.
        pub input_tokens: u64,
    }
}
