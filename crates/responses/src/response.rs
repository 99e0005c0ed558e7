//! The response object: the whole reply to a request that was not streamed, and a part of some events
//! (spec §2.1, wire-reference §1.5–1.8).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::{ApiError, Json, Object, TextOr};

use crate::request::{
    FunctionCall, Phase, Reasoning, ReasoningOptions, RefusalPart, TextOptions, Tool, ToolChoice, ToolMode, Truncation,
};

wire::objects!(ResponseError, IncompleteDetails, Usage, InputTokensDetails, OutputTokensDetails);

/// A response: what came of a request, and what it repeats of it.
///
/// Every field is always written. Of what it repeats, whatever is absent or null is read as the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// `resp_…`.
    pub id: String,
    /// `response`.
    pub object: String,
    /// When it was begun, in Unix seconds.
    #[serde(deserialize_with = "wire::integer")]
    pub created_at: i64,
    /// When it was completed, in Unix seconds.
    #[serde(default, deserialize_with = "wire::integer_or_null")]
    pub completed_at: Option<i64>,
    /// How far it got.
    pub status: Status,
    /// Whether it was made while nobody waited: never.
    #[serde(default, deserialize_with = "or_default")]
    pub background: bool,
    /// Why it failed.
    pub error: Option<ResponseError>,
    /// −2 to 2: against tokens by how often they occurred.
    #[serde(default, deserialize_with = "or_default", serialize_with = "number")]
    pub frequency_penalty: f64,
    /// Why it is incomplete.
    pub incomplete_details: Option<IncompleteDetails>,
    /// Instructions above the conversation.
    pub instructions: Option<TextOr<Json>>,
    /// The most tokens to generate.
    #[serde(default, deserialize_with = "wire::integer_or_null")]
    pub max_output_tokens: Option<i64>,
    /// The most calls of hosted tools.
    #[serde(default, deserialize_with = "wire::integer_or_null")]
    pub max_tool_calls: Option<i64>,
    /// The caller's own notes.
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: Object,
    /// The model that the caller asked for.
    pub model: String,
    /// What the model said, thought and called, in order.
    #[serde(default, deserialize_with = "or_default")]
    pub output: Vec<OutputItem>,
    /// Whether several calls at once were welcome.
    #[serde(default = "parallel_by_default", deserialize_with = "or_parallel")]
    pub parallel_tool_calls: bool,
    /// −2 to 2: against tokens that occurred.
    #[serde(default, deserialize_with = "or_default", serialize_with = "number")]
    pub presence_penalty: f64,
    /// The response that it went on from: none.
    pub previous_response_id: Option<String>,
    /// Requests with the same key are likely to share a cached prompt.
    pub prompt_cache_key: Option<String>,
    /// Whether and how to think.
    #[serde(default, deserialize_with = "or_default")]
    pub reasoning: ReasoningOptions,
    /// The caller's own name for its end user.
    pub safety_identifier: Option<String>,
    /// The class of service given.
    #[serde(default = "standard_tier", deserialize_with = "or_standard_tier")]
    pub service_tier: String,
    /// Whether it is kept: never.
    #[serde(default, deserialize_with = "or_default")]
    pub store: bool,
    /// 0 to 2: how freely the next token was drawn.
    #[serde(default = "one", deserialize_with = "or_one", serialize_with = "number")]
    pub temperature: f64,
    /// The form of the answer's text.
    #[serde(default, deserialize_with = "or_default")]
    pub text: TextOptions,
    /// Whether tools could, had to or must not be called.
    #[serde(default = "free_choice", deserialize_with = "or_free_choice")]
    pub tool_choice: ToolChoice,
    /// What the model could call.
    #[serde(default, deserialize_with = "or_default")]
    pub tools: Vec<Tool>,
    /// How many alternatives of each token to tell.
    #[serde(default, deserialize_with = "or_default")]
    pub top_logprobs: i64,
    /// 0 to 1: the share of likeliest tokens that were drawn among.
    #[serde(default = "one", deserialize_with = "or_one", serialize_with = "number")]
    pub top_p: f64,
    /// What to do with a conversation that is too long.
    #[serde(default, deserialize_with = "or_default")]
    pub truncation: Truncation,
    /// What it took; null when that is not known.
    pub usage: Option<Usage>,
    /// The older name of `safety_identifier`.
    pub user: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Response {
    /// The value of `object`.
    pub const OBJECT: &'static str = "response";

    /// The text of the answer: that of all messages, in order.
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

wire::open_enum! {
    /// How far a response, or an item of it, got (wire-reference §1.6).
    pub enum Status {
        /// The model is at it.
        InProgress = "in_progress",
        /// It ended as it should.
        Completed = "completed",
        /// It was cut.
        Incomplete = "incomplete",
        /// It failed.
        Failed = "failed",
        /// It waits; this gateway never says so.
        Queued = "queued",
        /// It was called off; this gateway never says so.
        Cancelled = "cancelled",
    }
}

/// Why a response failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct ResponseError {
    /// The machine-readable name (wire-reference §1.9).
    #[serde(default, deserialize_with = "or_default")]
    pub code: String,
    /// For a person.
    #[serde(default, deserialize_with = "or_default")]
    pub message: String,
    /// The sort of failure.
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    pub kind: String,
    /// The field at fault.
    pub param: Option<String>,
}

impl From<&ApiError> for ResponseError {
    /// A code that clients do not know inside of a response becomes `server_error`.
    fn from(error: &ApiError) -> Self {
        let (code, kind) = match error.code {
            code if KNOWN_CODES.contains(&code) => (code, error.kind.openai_type()),
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

/// Why a response is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct IncompleteDetails {
    /// The reason.
    pub reason: IncompleteReason,
}

wire::open_enum! {
    /// Why a response is incomplete.
    pub enum IncompleteReason {
        /// The cap on the output, or the model's context is full.
        MaxOutputTokens = "max_output_tokens",
        /// A filter.
        ContentFilter = "content_filter",
    }
}

wire::tagged! {
    /// One item of what the model said, thought and called. Traces of hosted tools are `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum OutputItem("type") {
        /// What it said.
        Message(OutputMessage) = "message",
        /// What it called.
        FunctionCall(FunctionCall) = "function_call",
        /// What it thought.
        Reasoning(Reasoning) = "reasoning",
    }
}

impl OutputItem {
    /// The item's id; empty when it has none.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Message(message) => &message.id,
            Self::FunctionCall(call) => call.id.as_deref().unwrap_or_default(),
            Self::Reasoning(reasoning) => reasoning.id.as_deref().unwrap_or_default(),
            Self::Other(members) => members.get("id").and_then(|id| id.as_str()).unwrap_or_default(),
        }
    }

    /// How far the item got; thoughts do not tell.
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

/// What the model said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputMessage {
    /// `msg_…`.
    pub id: String,
    /// How far it got.
    pub status: Status,
    /// `assistant`.
    pub role: String,
    /// The parts, in order.
    pub content: Vec<OutputPart>,
    /// Whether it is the answer; absent as long as that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl OutputMessage {
    /// The value of `role`.
    pub const ROLE: &'static str = "assistant";
}

wire::tagged! {
    /// One part of what the model said.
    #[derive(Clone, Debug, PartialEq)]
    pub enum OutputPart("type") {
        /// Text.
        Text(OutputText) = "output_text",
        /// A refusal.
        Refusal(RefusalPart) = "refusal",
    }
}

/// Text that the model said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputText {
    /// The text.
    pub text: String,
    /// Sources and the like.
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: Vec<Json>,
    /// How likely each token was, when that was asked for.
    #[serde(default, deserialize_with = "or_default")]
    pub logprobs: Vec<Json>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Tokens used. Everything is always written (wire-reference §1.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Of them.
    #[serde(default, deserialize_with = "or_default")]
    pub input_tokens_details: InputTokensDetails,
    /// Tokens of the answer, thoughts included.
    pub output_tokens: u64,
    /// Of them.
    #[serde(default, deserialize_with = "or_default")]
    pub output_tokens_details: OutputTokensDetails,
    /// Both.
    pub total_tokens: u64,
}

impl Usage {
    /// The usage of a prompt and an answer of so many tokens, nothing of them cached and no thoughts.
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

/// Of the prompt's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct InputTokensDetails {
    /// Those read from a cache.
    #[serde(default, deserialize_with = "or_default")]
    pub cached_tokens: u64,
    /// Those written to a cache.
    #[serde(default, deserialize_with = "or_default")]
    pub cache_write_tokens: u64,
}

/// Of the answer's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct OutputTokensDetails {
    /// Those of thoughts.
    #[serde(default, deserialize_with = "or_default")]
    pub reasoning_tokens: u64,
}

/// Reads null as the default.
pub(crate) fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
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

/// Writes a whole number without a fraction: `1`, as clients send it.
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

/// What clients make something of inside of a response (wire-reference §1.9).
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
