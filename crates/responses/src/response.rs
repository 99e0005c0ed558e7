//! The response object: the body of an unstreamed response, and part of some events. See
//! <https://platform.openai.com/docs/api-reference/responses/object>.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::{ApiError, Json, Object, TextOr};

use crate::request::{
    FunctionCall, Phase, Reasoning, ReasoningOptions, RefusalPart, TextOptions, Tool, ToolChoice,
    ToolMode, Truncation,
};
use crate::status::Status;

wire::objects!(ResponseError, Usage);

/// A response object: the output of the model, and the options it was generated with.
///
/// Every field is always serialized. Options that are absent or null are deserialized as their
/// defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Response {
    /// The id of the response, `resp_…`.
    pub id: String,
    /// The object type, `response`.
    pub object: String,
    /// Creation time, in Unix seconds.
    #[serde(deserialize_with = "wire::integer")]
    pub created_at: i64,
    /// Completion time, in Unix seconds.
    #[serde(default, deserialize_with = "wire::integer_or_null")]
    pub completed_at: Option<i64>,
    /// The status.
    pub status: Status,
    /// True for a background response; the encoder always writes false.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub background: bool,
    /// The error of a failed response.
    pub error: Option<ResponseError>,
    /// Penalty for tokens in proportion to how often they appeared, −2 to 2.
    #[serde(
        default,
        deserialize_with = "wire::or_default",
        serialize_with = "number"
    )]
    pub frequency_penalty: f64,
    /// The reason why the response is incomplete.
    pub incomplete_details: Option<IncompleteDetails>,
    /// System instructions that precede the conversation.
    pub instructions: Option<TextOr<Json>>,
    /// Maximum number of tokens to generate, including reasoning tokens.
    #[serde(default, deserialize_with = "wire::integer_or_null")]
    pub max_output_tokens: Option<i64>,
    /// Maximum number of calls of hosted tools, at least 1.
    #[serde(default, deserialize_with = "wire::integer_or_null")]
    pub max_tool_calls: Option<i64>,
    /// Key-value pairs of the client's own.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub metadata: Object,
    /// The id of the model, as requested.
    pub model: String,
    /// The output items, in order.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub output: Vec<OutputItem>,
    /// True if the model was allowed to make several calls in one turn.
    #[serde(default = "parallel_by_default", deserialize_with = "or_parallel")]
    pub parallel_tool_calls: bool,
    /// Penalty for tokens that already appeared, −2 to 2.
    #[serde(
        default,
        deserialize_with = "wire::or_default",
        serialize_with = "number"
    )]
    pub presence_penalty: f64,
    /// The id of the continued response; the encoder always writes null.
    pub previous_response_id: Option<String>,
    /// Cache key: requests with the same key are likely to share a cached prompt.
    pub prompt_cache_key: Option<String>,
    /// Controls the model's reasoning.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub reasoning: ReasoningOptions,
    /// The client's identifier for its end user.
    pub safety_identifier: Option<String>,
    /// The service tier that processed the request.
    #[serde(default = "standard_tier", deserialize_with = "or_standard_tier")]
    pub service_tier: String,
    /// True if the response is stored; the encoder always writes false.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub store: bool,
    /// Sampling temperature, 0 to 2.
    #[serde(
        default = "one",
        deserialize_with = "or_one",
        serialize_with = "number"
    )]
    pub temperature: f64,
    /// The format of the output text.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub text: TextOptions,
    /// Controls whether the model called tools, and which.
    #[serde(default = "free_choice", deserialize_with = "or_free_choice")]
    pub tool_choice: ToolChoice,
    /// The tools that the model was offered.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub tools: Vec<Tool>,
    /// Number of alternatives to report per output token, 0 to 20.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub top_logprobs: i64,
    /// Nucleus sampling: the probability mass that was sampled from, 0 to 1.
    #[serde(
        default = "one",
        deserialize_with = "or_one",
        serialize_with = "number"
    )]
    pub top_p: f64,
    /// The strategy for conversations that exceed the model's context window.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub truncation: Truncation,
    /// Token usage; null if unknown.
    pub usage: Option<Usage>,
    /// The predecessor of `safety_identifier`.
    pub user: Option<String>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

impl Response {
    /// The value of `object`.
    pub const OBJECT: &'static str = "response";

    /// Returns the output text of all messages, concatenated in order.
    #[must_use]
    pub fn output_text(&self) -> String {
        let messages = self.output.iter().filter_map(|item| match item {
            OutputItem::Message(message) => Some(&message.content),
            _ => None,
        });
        let texts = messages.flatten().filter_map(|part| match part {
            OutputPart::Text(part) => Some(part.text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// The error of a failed response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct ResponseError {
    /// Machine-readable error code.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub code: String,
    /// Human-readable description.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub message: String,
    /// The error type.
    #[serde(rename = "type", default, deserialize_with = "wire::or_default")]
    pub kind: String,
    /// The request field that caused the error, as a path.
    pub param: Option<String>,
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<&ApiError> for ResponseError {
    /// Codes that clients do not recognize within a response become `server_error`.
    fn from(error: &ApiError) -> Self {
        let (code, kind) = match error.code {
            code if KNOWN_CODES.contains(&code) => (code, error.openai_type()),
            _ => (SERVER_ERROR, SERVER_ERROR),
        };
        Self {
            code: code.to_owned(),
            message: error.message.clone(),
            kind: kind.to_owned(),
            param: error.param.clone(),
        }
    }
}

wire::closed_structs! {
    /// The reason why a response is incomplete.
    #[derive(Eq)]
    pub struct IncompleteDetails {
        /// The reason.
        pub reason: IncompleteReason,
    }
}

wire::open_enum! {
    /// The reason why a response is incomplete.
    pub enum IncompleteReason {
        /// The output limit was reached, or the context window is full.
        MaxOutputTokens = "max_output_tokens",
        /// A content filter intervened.
        ContentFilter = "content_filter",
    }
}

wire::tagged! {
    /// One output item. The items of hosted tools are `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum OutputItem("type") {
        /// A message.
        Message(OutputMessage) = "message",
        /// A function call.
        FunctionCall(FunctionCall) = "function_call",
        /// Reasoning of the model.
        Reasoning(Reasoning) = "reasoning",
    }
}

impl OutputItem {
    /// Returns the item's id, or an empty string if it has none.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Message(message) => &message.id,
            Self::FunctionCall(call) => call.id.as_deref().unwrap_or_default(),
            Self::Reasoning(reasoning) => reasoning.id.as_deref().unwrap_or_default(),
            Self::Other(members) => members
                .get("id")
                .and_then(|id| id.as_str())
                .unwrap_or_default(),
        }
    }

    /// Returns the item's status. Reasoning items have none.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Message(message) => Some(&message.status),
            Self::FunctionCall(call) => call.status.as_ref(),
            Self::Reasoning(_) | Self::Other(_) => None,
        }
    }

    pub(crate) fn set_status(&mut self, status: Status) {
        match self {
            Self::Message(message) => message.status = status,
            Self::FunctionCall(call) => call.status = Some(status),
            Self::Reasoning(_) | Self::Other(_) => {}
        }
    }
}

wire::open_structs! {
    /// The response body of `POST /v1/responses/input_tokens`.
    #[derive(Eq)]
    pub struct InputTokenCount {
        /// Number of tokens in the prompt.
        pub input_tokens: u64,
        /// `response.input_tokens`.
        pub object: String,
    }
}

impl InputTokenCount {
    /// The value of `object`.
    pub const OBJECT: &'static str = "response.input_tokens";
}

wire::open_structs! {
    /// A message of the model.
    pub struct OutputMessage {
        /// The id of the message, `msg_…`.
        pub id: String,
        /// The status.
        pub status: Status,
        /// The role, `assistant`.
        pub role: String,
        /// The content parts, in order.
        pub content: Vec<OutputPart>,
        /// Final answer or commentary. Absent while undecided.
        pub phase: Option<Phase>,
    }
}

impl OutputMessage {
    /// The value of `role`.
    pub const ROLE: &'static str = "assistant";
}

wire::tagged! {
    /// One part of a message of the model.
    #[derive(Clone, Debug, PartialEq)]
    pub enum OutputPart("type") {
        /// Text.
        Text(OutputText) = "output_text",
        /// A refusal.
        Refusal(RefusalPart) = "refusal",
    }
}

wire::open_structs! {
    /// Output text of the model.
    #[derive(Default)]
    pub struct OutputText {
        /// The text.
        pub text: String,
        /// Annotations such as citations.
        #[serde(default, deserialize_with = "wire::or_default")]
        pub annotations: Vec<Json>,
        /// Log probabilities of the output tokens, if requested.
        #[serde(default, deserialize_with = "wire::or_default")]
        pub logprobs: Vec<Json>,
    }
}

/// Token usage. Every field is always serialized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Breakdown of `input_tokens`.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub input_tokens_details: InputTokensDetails,
    /// Tokens of the output, including reasoning tokens.
    pub output_tokens: u64,
    /// Breakdown of `output_tokens`.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub output_tokens_details: OutputTokensDetails,
    /// Sum of input and output tokens.
    pub total_tokens: u64,
}

impl Usage {
    /// Creates a usage without cached tokens and without reasoning tokens.
    #[must_use]
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
            ..Self::default()
        }
    }
}

wire::closed_structs! {
    /// Breakdown of the prompt's tokens.
    #[derive(Copy, Default, Eq)]
    pub struct InputTokensDetails {
        /// Tokens read from a prompt cache.
        #[serde(default, deserialize_with = "wire::or_default")]
        pub cached_tokens: u64,
        /// Tokens written to a prompt cache.
        #[serde(default, deserialize_with = "wire::or_default")]
        pub cache_write_tokens: u64,
    }

    /// Breakdown of the output tokens.
    #[derive(Copy, Default, Eq)]
    pub struct OutputTokensDetails {
        /// Tokens spent on reasoning.
        #[serde(default, deserialize_with = "wire::or_default")]
        pub reasoning_tokens: u64,
    }
}

fn or_one<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Option::deserialize(from).map(|number| number.unwrap_or_else(one))
}

fn or_standard_tier<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Option::deserialize(from).map(|tier| tier.unwrap_or_else(standard_tier))
}

fn or_parallel<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Option::deserialize(from).map(|parallel| parallel.unwrap_or_else(parallel_by_default))
}

fn or_free_choice<'de, D: Deserializer<'de>>(from: D) -> Result<ToolChoice, D::Error> {
    Option::deserialize(from).map(|choice| choice.unwrap_or_else(free_choice))
}

/// Serializes an integral number without a fraction: `1`, as clients send it.
fn number<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
    match *number as i32 {
        whole if f64::from(whole) == *number => to.serialize_i32(whole),
        _ => to.serialize_f64(*number),
    }
}

pub(crate) fn one() -> f64 {
    1.0
}

pub(crate) fn parallel_by_default() -> bool {
    true
}

pub(crate) fn standard_tier() -> String {
    "default".to_owned()
}

pub(crate) fn free_choice() -> ToolChoice {
    ToolChoice::Word(ToolMode::Auto)
}

const SERVER_ERROR: &str = "server_error";

/// The error codes that clients recognize within a response.
const KNOWN_CODES: [&str; 9] = [
    SERVER_ERROR,
    "gateway_concurrency_limit",
    "rate_limit_exceeded",
    "context_length_exceeded",
    "insufficient_quota",
    "usage_not_included",
    "invalid_prompt",
    "server_is_overloaded",
    "slow_down",
];
