//! The reply to a request that was not streamed (spec §2.2, wire-reference §2.3).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use wire::{Json, Object};

use crate::ToolCall;

wire::objects!(Usage);

/// A chat completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completion {
    /// `chatcmpl-…`.
    pub id: String,
    /// `chat.completion`.
    pub object: String,
    /// When it was made, in Unix seconds.
    pub created: i64,
    /// The model that the caller asked for.
    pub model: String,
    /// The answers.
    pub choices: Vec<Choice>,
    /// What it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Completion {
    /// The value of `object`.
    pub const OBJECT: &'static str = "chat.completion";
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Its place, from 0.
    pub index: u32,
    /// What the model said and called.
    pub message: ChoiceMessage,
    /// How likely each token was, when that was asked for.
    pub logprobs: Option<Json>,
    /// Why it ended.
    pub finish_reason: Option<FinishReason>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What the model said and called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceMessage {
    /// `assistant`.
    pub role: String,
    /// What it said; null when it only called or refused.
    pub content: Option<String>,
    /// What it thought before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// What it said in refusing.
    pub refusal: Option<String>,
    /// What it called.
    #[serde(default, deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// Why an answer ended.
    pub enum FinishReason {
        /// The model was done, or a stop text came up.
        Stop = "stop",
        /// The cap on the output.
        Length = "length",
        /// The model waits for what comes of its calls.
        ToolCalls = "tool_calls",
        /// A filter.
        ContentFilter = "content_filter",
    }
}

/// Tokens used. A breakdown is never given (spec §2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer, thoughts included.
    pub completion_tokens: u64,
    /// Both.
    pub total_tokens: u64,
}

impl Usage {
    /// The usage of a prompt and an answer of so many tokens.
    #[must_use]
    pub fn new(prompt_tokens: u64, completion_tokens: u64) -> Self {
        Self { prompt_tokens, completion_tokens, total_tokens: prompt_tokens.saturating_add(completion_tokens) }
    }
}

/// Reads `null`, as some servers write it, as no calls.
fn or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ToolCall>, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}
