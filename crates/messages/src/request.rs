//! The request: `POST /v1/messages` and `/v1/messages/count_tokens` (spec §4.4, wire-reference §3.1–3.2, §3.6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Json, Object, TextOr, Violations};

use crate::{RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock};

/// A request for a message, or for the tokens that it would take.
///
/// Optional fields are `None` when absent or null; what is not named here is kept in `extra`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The model.
    pub model: String,
    /// The most tokens to generate. A message needs it, a count does without.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_tokens: Option<i64>,
    /// Instructions above the conversation: a text, or text blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<TextOr<InputBlock>>,
    /// The conversation, oldest first; the caller sends all of it each time.
    pub messages: Vec<InputMessage>,
    /// Whether to answer as a stream of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// 0 to 1: how freely to draw the next token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub temperature: Option<f64>,
    /// 0 to 1: draw among the likeliest tokens that make up this share.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// Draw among so many of the likeliest tokens.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub top_k: Option<i64>,
    /// What the model may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether it may, must or must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether and how long to think first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// How hard to try, and the form of the answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_config: Option<OutputConfig>,
    /// What the caller says about the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Request {
    /// Reads a request body.
    ///
    /// # Errors
    /// Everything that keeps the body from being a request, with paths. A missing `max_tokens` is told by
    /// [`Request::validate`], for a count does without.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// Whether a stream is asked for.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.stream == Some(true)
    }

    /// The caller's own name for its end user.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.metadata.as_ref()?.user_id.as_deref()
    }
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputMessage {
    /// Whose it is.
    pub role: Role,
    /// A text, or blocks.
    pub content: TextOr<InputBlock>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// Whose a message is.
    pub enum Role {
        /// What the user says, and what came of calls.
        User = "user",
        /// What the model said and called in an earlier turn.
        Assistant = "assistant",
        /// Instructions, at their place in the conversation.
        System = "system",
    }
}

wire::tagged! {
    /// One block of a message's content, or of a call's result.
    #[derive(Clone, Debug, PartialEq)]
    pub enum InputBlock("type") {
        /// Text.
        Text(TextBlock) = "text",
        /// A picture.
        Image(ImageBlock) = "image",
        /// A document.
        Document(DocumentBlock) = "document",
        /// A call that the model made.
        ToolUse(ToolUseBlock) = "tool_use",
        /// What came of a call.
        ToolResult(ToolResultBlock) = "tool_result",
        /// What the model thought.
        Thinking(ThinkingBlock) = "thinking",
        /// What the model thought, sealed.
        RedactedThinking(RedactedThinkingBlock) = "redacted_thinking",
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageBlock {
    /// Where its bytes are.
    pub source: Source,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentBlock {
    /// Where its content is.
    pub source: Source,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the model should know about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// Where the content of a picture or a document is.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Source("type") {
        /// Here, as base64: pictures and PDFs.
        Base64(DataSource) = "base64",
        /// Here, as plain text: documents.
        Text(DataSource) = "text",
        /// Behind a public https address.
        Url(UrlSource) = "url",
        /// Here, as a text or blocks: documents.
        Content(ContentSource) = "content",
    }
}

/// Content that is here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataSource {
    /// Its media type, such as `image/png`.
    pub media_type: String,
    /// The content: plain text, or base64 of the standard alphabet with padding.
    pub data: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Content behind an address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UrlSource {
    /// The address.
    pub url: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Content made of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentSource {
    /// A text, or text and pictures.
    pub content: TextOr<InputBlock>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResultBlock {
    /// The id of the call.
    pub tool_use_id: String,
    /// What the tool said: a text, or text, pictures and documents. Absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<TextOr<InputBlock>>,
    /// Whether the tool says that it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// What the model may call. Tools that the vendor's own servers run are `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Tool("type") {
        /// A tool of the caller's; without a type it is this one.
        Custom(CustomTool) = "custom",
    }
    untagged |_members| ["custom"] { Some("custom") }
}

impl Tool {
    /// The name by which it is called.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Custom(tool) => Some(&tool.name),
            Self::Other(members) => members.get("name")?.as_str(),
        }
    }
}

/// A tool of the caller's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomTool {
    /// Its name, by which it is called.
    pub name: String,
    /// What it does, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema of its input.
    pub input_schema: Json,
    /// Whether the input must fit the schema exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// Whether tools may, must or must not be called.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolChoice("type") {
        /// The model decides.
        Auto(AnyTool) = "auto",
        /// At least one must.
        Any(AnyTool) = "any",
        /// They must not.
        None(AnyTool) = "none",
        /// This one must.
        Tool(NamedTool) = "tool",
    }
}

impl ToolChoice {
    /// Whether the model is held to one call at a time; `None` when that is not said.
    #[must_use]
    pub fn disables_parallel_use(&self) -> Option<bool> {
        match self {
            Self::Auto(choice) | Self::Any(choice) | Self::None(choice) => choice.disable_parallel_tool_use,
            Self::Tool(choice) => choice.disable_parallel_tool_use,
            Self::Other(_) => None,
        }
    }
}

/// A choice that names no tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnyTool {
    /// Whether the model is held to one call at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_parallel_tool_use: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// The tool that must be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedTool {
    /// Its name.
    pub name: String,
    /// Whether the model is held to one call at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_parallel_tool_use: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// Whether and how long to think first.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Thinking("type") {
        /// So many tokens at most.
        Enabled(ThinkingBudget) = "enabled",
        /// Not at all.
        Disabled(ThinkingMode) = "disabled",
        /// As long as the model sees fit.
        Adaptive(ThinkingMode) = "adaptive",
        /// As the model sees fit, between calls too.
        BetweenTools(ThinkingMode) = "between_tools",
    }
}

impl Thinking {
    /// What of the thoughts to tell.
    #[must_use]
    pub fn display(&self) -> Option<&ThinkingDisplay> {
        match self {
            Self::Enabled(thinking) => thinking.display.as_ref(),
            Self::Disabled(mode) | Self::Adaptive(mode) | Self::BetweenTools(mode) => mode.display.as_ref(),
            Self::Other(_) => None,
        }
    }
}

/// How long to think.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingBudget {
    /// The most tokens to think, 1024 at least.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 1024))]
    pub budget_tokens: i64,
    /// What of the thoughts to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<ThinkingDisplay>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Thinking without a budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingMode {
    /// What of the thoughts to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<ThinkingDisplay>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// What of the thoughts to tell.
    pub enum ThinkingDisplay {
        /// A summary.
        Summarized = "summarized",
        /// Nothing but the seal.
        Omitted = "omitted",
    }
}

/// How hard to try, and the form of the answer's text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputConfig {
    /// How hard to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The form of the answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// How hard to try.
    pub enum Effort {
        /// A little.
        Low = "low",
        /// Middling.
        Medium = "medium",
        /// A lot.
        High = "high",
        /// More than a lot.
        XHigh = "xhigh",
        /// Whatever it takes.
        Max = "max",
    }
}

wire::tagged! {
    /// The form of the answer's text.
    #[derive(Clone, Debug, PartialEq)]
    pub enum OutputFormat("type") {
        /// JSON that fits a schema.
        JsonSchema(JsonSchemaFormat) = "json_schema",
    }
}

/// JSON that fits a schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JsonSchemaFormat {
    /// The JSON Schema.
    pub schema: Json,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What the caller says about the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metadata {
    /// The caller's own name for its end user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}
