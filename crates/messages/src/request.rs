//! The request body of `POST /v1/messages` and `POST /v1/messages/count_tokens`. See
//! <https://docs.anthropic.com/en/api/messages>.

use wire::{Json, TextOr, Violations};

use crate::{RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock};

wire::open_structs! {
    /// A request for a message, or for its token count.
    ///
    /// Optional fields are `None` when absent or null; unrecognized fields are kept in `extra`.
    #[derive(Default)]
    pub struct Request {
        /// The id of the model.
        pub model: String,
        /// Maximum number of tokens to generate; at least 1, or 0 where cache warming is allowed.
        /// Required for a message, optional for a token count.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 0))]
        pub max_tokens: Option<i64>,
        /// System instructions that precede the conversation: a string or text blocks.
        pub system: Option<TextOr<InputBlock>>,
        /// The conversation, oldest message first. Nothing is stored, so every request carries all
        /// of it.
        pub messages: Vec<InputMessage>,
        /// True to stream the response as server-sent events.
        pub stream: Option<bool>,
        /// Stop sequences.
        pub stop_sequences: Option<Vec<String>>,
        /// Sampling temperature, 0 to 1.
        #[schemars(range(min = 0, max = 1))]
        pub temperature: Option<f64>,
        /// Nucleus sampling: the probability mass to sample from, 0 to 1.
        #[schemars(range(min = 0, max = 1))]
        pub top_p: Option<f64>,
        /// Top-k sampling: the number of most likely tokens to sample from, at least 0.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 0))]
        pub top_k: Option<i64>,
        /// The tools that the model may call.
        pub tools: Option<Vec<Tool>>,
        /// Controls whether the model calls tools, and which.
        pub tool_choice: Option<ToolChoice>,
        /// Controls the model's thinking.
        pub thinking: Option<Thinking>,
        /// Effort and format of the output.
        pub output_config: Option<OutputConfig>,
        /// Information about the request.
        pub metadata: Option<Metadata>,
    }
}

impl Request {
    /// Parses a request body.
    ///
    /// # Errors
    /// Returns every violation of the request schema, each with its path. A missing `max_tokens` is
    /// reported by [`Request::validate`], because token counts do not need it.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// Returns true if the client requested a stream.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.stream == Some(true)
    }

    /// Returns the client's identifier for its end user.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.metadata.as_ref()?.user_id.as_deref()
    }
}

wire::open_structs! {
    /// One message of the conversation.
    pub struct InputMessage {
        /// The role of the author.
        pub role: Role,
        /// The content, as a string or as blocks. Only a system message may do without it, to change
        /// settings within the conversation.
        pub content: Option<TextOr<InputBlock>>,
    }
}

impl InputMessage {
    /// Returns the blocks of the content, which are none if it is a string.
    #[must_use]
    pub fn blocks(&self) -> &[InputBlock] {
        self.content.as_ref().map_or(&[], TextOr::parts)
    }
}

wire::open_enum! {
    /// The role of a message's author.
    pub enum Role {
        /// The user: text and the results of calls.
        User = "user",
        /// The model: text, thinking and calls of an earlier turn.
        Assistant = "assistant",
        /// System instructions within the conversation.
        System = "system",
    }
}

wire::tagged! {
    /// One block of a message's content, or of a call's result.
    #[derive(Clone, Debug, PartialEq)]
    pub enum InputBlock("type") {
        /// A text block.
        Text(TextBlock) = "text",
        /// An image.
        Image(ImageBlock) = "image",
        /// A document.
        Document(DocumentBlock) = "document",
        /// A call made by the model.
        ToolUse(ToolUseBlock) = "tool_use",
        /// The result of a tool call.
        ToolResult(ToolResultBlock) = "tool_result",
        /// Thinking of the model.
        Thinking(ThinkingBlock) = "thinking",
        /// Thinking of the model that only the model can decrypt.
        RedactedThinking(RedactedThinkingBlock) = "redacted_thinking",
    }
}

wire::open_structs! {
    /// An image.
    pub struct ImageBlock {
        /// The location of the image.
        pub source: Source,
    }

    /// A document.
    pub struct DocumentBlock {
        /// The location of the content.
        pub source: Source,
        /// The title of the document.
        pub title: Option<String>,
        /// Background information about the document, for the model.
        pub context: Option<String>,
    }
}

wire::tagged! {
    /// The content of an image or a document, or its location.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Source("type") {
        /// Inline base64: images and PDFs.
        Base64(DataSource) = "base64",
        /// Inline plain text: documents.
        Text(DataSource) = "text",
        /// A public https URL.
        Url(UrlSource) = "url",
        /// Inline text or blocks: documents.
        Content(ContentSource) = "content",
    }
}

wire::open_structs! {
    /// Inline content.
    pub struct DataSource {
        /// The media type, such as `image/png`.
        pub media_type: String,
        /// The content: plain text, or padded base64 of the standard alphabet.
        pub data: String,
    }

    /// Content behind a URL.
    pub struct UrlSource {
        /// The URL.
        pub url: String,
    }

    /// Content made of blocks.
    pub struct ContentSource {
        /// A string, or text and image blocks.
        pub content: TextOr<InputBlock>,
    }

    /// The result of a tool call.
    pub struct ToolResultBlock {
        /// The id of the call that this is the result of.
        pub tool_use_id: String,
        /// The output of the tool: a string, or text, image and document blocks. `None` means no
        /// output.
        pub content: Option<TextOr<InputBlock>>,
        /// True if the tool reported a failure.
        pub is_error: Option<bool>,
    }
}

wire::tagged! {
    /// A tool that the model may call. Tools that run on the vendor's servers are `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Tool("type") {
        /// A tool of the client. A tool without a `type` is custom, too.
        Custom(CustomTool) = "custom",
    }
    untagged |_members| ["custom"] { Some("custom") }
}

impl Tool {
    /// Returns the name by which the model calls the tool.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Custom(tool) => Some(&tool.name),
            Self::Other(members) => members.get("name")?.as_str(),
        }
    }
}

wire::open_structs! {
    /// A tool of the client.
    pub struct CustomTool {
        /// The name by which the model calls it.
        pub name: String,
        /// A description of its purpose, for the model.
        pub description: Option<String>,
        /// A JSON Schema of the input.
        pub input_schema: Json,
        /// True to enforce the schema of the input exactly.
        pub strict: Option<bool>,
    }
}

wire::tagged! {
    /// Controls whether the model calls tools.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolChoice("type") {
        /// The model decides whether to call tools.
        Auto(AnyTool) = "auto",
        /// The model must call at least one tool.
        Any(AnyTool) = "any",
        /// The model must not call tools.
        None(AnyTool) = "none",
        /// The model must call this tool.
        Tool(NamedTool) = "tool",
    }
}

impl ToolChoice {
    /// Returns true if the model is limited to one call per turn; `None` if unspecified.
    #[must_use]
    pub fn disables_parallel_use(&self) -> Option<bool> {
        match self {
            Self::Auto(choice) | Self::Any(choice) | Self::None(choice) => {
                choice.disable_parallel_tool_use
            }
            Self::Tool(choice) => choice.disable_parallel_tool_use,
            Self::Other(_) => None,
        }
    }
}

wire::open_structs! {
    /// A choice that does not name a tool.
    #[derive(Default)]
    pub struct AnyTool {
        /// True to limit the model to one call per turn.
        pub disable_parallel_tool_use: Option<bool>,
    }

    /// The tool that the model must call.
    pub struct NamedTool {
        /// The name.
        pub name: String,
        /// True to limit the model to one call per turn.
        pub disable_parallel_tool_use: Option<bool>,
    }
}

wire::tagged! {
    /// Controls the model's thinking.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Thinking("type") {
        /// Thinking with a token budget.
        Enabled(ThinkingBudget) = "enabled",
        /// Thinking is disabled.
        Disabled(ThinkingMode) = "disabled",
        /// The model decides how much to think.
        Adaptive(ThinkingMode) = "adaptive",
        /// The model decides how much to think, also between calls.
        BetweenTools(ThinkingMode) = "between_tools",
    }
}

impl Thinking {
    /// Returns how thinking is returned.
    #[must_use]
    pub fn display(&self) -> Option<&ThinkingDisplay> {
        match self {
            Self::Enabled(thinking) => thinking.display.as_ref(),
            Self::Disabled(mode) | Self::Adaptive(mode) | Self::BetweenTools(mode) => {
                mode.display.as_ref()
            }
            Self::Other(_) => None,
        }
    }
}

wire::open_structs! {
    /// Thinking with a token budget.
    pub struct ThinkingBudget {
        /// Maximum number of thinking tokens, at least 1024.
        #[serde(deserialize_with = "wire::integer")]
        #[schemars(range(min = 1024))]
        pub budget_tokens: i64,
        /// Controls how thinking is returned.
        pub display: Option<ThinkingDisplay>,
    }

    /// Thinking without a budget.
    #[derive(Default)]
    pub struct ThinkingMode {
        /// Controls how thinking is returned.
        pub display: Option<ThinkingDisplay>,
    }
}

wire::open_enum! {
    /// Controls how thinking is returned.
    pub enum ThinkingDisplay {
        /// As a summary.
        Summarized = "summarized",
        /// Only as a signature.
        Omitted = "omitted",
        /// As short reports of the progress between calls, of the beta `thinking-display-updates`.
        Updates = "updates",
    }
}

wire::open_structs! {
    /// Effort and format of the output.
    #[derive(Default)]
    pub struct OutputConfig {
        /// Effort of the output.
        pub effort: Option<Effort>,
        /// The format of the output text.
        pub format: Option<OutputFormat>,
    }
}

wire::open_enum! {
    /// Effort of the output.
    pub enum Effort {
        /// Low effort.
        Low = "low",
        /// Medium effort.
        Medium = "medium",
        /// High effort.
        High = "high",
        /// Extra-high effort.
        XHigh = "xhigh",
        /// Maximum effort.
        Max = "max",
    }
}

wire::tagged! {
    /// The format of the output text.
    #[derive(Clone, Debug, PartialEq)]
    pub enum OutputFormat("type") {
        /// JSON that conforms to a schema.
        JsonSchema(JsonSchemaFormat) = "json_schema",
    }
}

wire::open_structs! {
    /// JSON that conforms to a schema.
    pub struct JsonSchemaFormat {
        /// The JSON Schema.
        pub schema: Json,
    }

    /// Information about the request.
    #[derive(Default)]
    pub struct Metadata {
        /// The client's identifier for its end user.
        pub user_id: Option<String>,
    }
}
