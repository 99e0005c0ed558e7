//! The body of an unstreamed response. See
//! <https://platform.openai.com/docs/api-reference/chat/object>.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Json, Object};

use crate::ToolCall;

wire::objects!(Usage);

wire::open_structs! {
    /// A chat completion.
    pub struct Completion {
        /// The id of the completion, `chatcmpl-…`.
        pub id: String,
        /// The object type, `chat.completion`.
        pub object: String,
        /// Creation time, in Unix seconds.
        pub created: i64,
        /// The id of the model, as requested.
        pub model: String,
        /// The choices.
        pub choices: Vec<Choice>,
        /// Token usage.
        pub usage: Option<Usage>,
    }
}

impl Completion {
    /// The value of `object`.
    pub const OBJECT: &'static str = "chat.completion";
}

/// One choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Choice {
    /// Index of the choice, from 0.
    pub index: u32,
    /// The message of the model.
    pub message: ChoiceMessage,
    /// Log probabilities of the output tokens, if requested.
    pub logprobs: Option<Json>,
    /// The reason why the choice ended.
    pub finish_reason: Option<FinishReason>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// A message of the model: text and calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ChoiceMessage {
    /// The role, `assistant`.
    pub role: String,
    /// The output text; null if the model only made calls or refused.
    pub content: Option<String>,
    /// The reasoning that preceded the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The text of the refusal.
    pub refusal: Option<String>,
    /// The calls that the model made. Some servers send null without any.
    #[serde(
        default,
        deserialize_with = "wire::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tool_calls: Vec<ToolCall>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// The reason why a choice ended.
    pub enum FinishReason {
        /// The model finished, or a stop sequence matched.
        Stop = "stop",
        /// The output limit was reached.
        Length = "length",
        /// The model is waiting for the results of its calls.
        ToolCalls = "tool_calls",
        /// A content filter intervened.
        ContentFilter = "content_filter",
    }
}

/// Token usage, without a breakdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the output, including reasoning tokens.
    pub completion_tokens: u64,
    /// Sum of prompt and completion tokens.
    pub total_tokens: u64,
}

impl Usage {
    /// Creates a usage from its two counts.
    #[must_use]
    pub fn new(prompt_tokens: u64, completion_tokens: u64) -> Self {
        Self {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens.saturating_add(completion_tokens),
        }
    }
}
