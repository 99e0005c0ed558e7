//! The request body of `POST /v1/chat/completions`. See
//! <https://platform.openai.com/docs/api-reference/chat/create>.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use wire::{Effort, ToolMode};
use wire::{Json, Object, TextOr, Violations, WordOr};

wire::open_structs! {
    /// A request for a chat completion.
    ///
    /// Optional fields are `None` when absent or null; unrecognized fields are kept in `extra`.
    #[derive(Default)]
    pub struct Request {
        /// The id of the model.
        pub model: String,
        /// The conversation, oldest message first. Nothing is stored, so every request carries all
        /// of it.
        pub messages: Vec<Message>,
        /// Maximum number of tokens to generate; at least 1.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 1))]
        pub max_tokens: Option<i64>,
        /// The successor of `max_tokens`; at least 1.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 1))]
        pub max_completion_tokens: Option<i64>,
        /// True to stream the response as server-sent events.
        pub stream: Option<bool>,
        /// Options of the stream.
        pub stream_options: Option<StreamOptions>,
        /// The format of the output text.
        pub response_format: Option<ResponseFormat>,
        /// The tools that the model may call.
        pub tools: Option<Vec<Tool>>,
        /// Controls whether the model calls tools, and which.
        pub tool_choice: Option<ToolChoice>,
        /// True if the model may make several calls in one turn.
        pub parallel_tool_calls: Option<bool>,
        /// Sampling temperature, 0 to 2.
        #[schemars(range(min = 0, max = 2))]
        pub temperature: Option<f64>,
        /// Nucleus sampling: the probability mass to sample from, 0 to 1.
        #[schemars(range(min = 0, max = 1))]
        pub top_p: Option<f64>,
        /// Penalty for tokens that already appeared, −2 to 2.
        #[schemars(range(min = -2, max = 2))]
        pub presence_penalty: Option<f64>,
        /// Penalty for tokens in proportion to how often they appeared, −2 to 2.
        #[schemars(range(min = -2, max = 2))]
        pub frequency_penalty: Option<f64>,
        /// One to four stop sequences.
        pub stop: Option<TextOr<String>>,
        /// Number of choices to generate, 1 to 128. Values above 1 are rejected unless the model's
        /// rules allow them.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 1, max = 128))]
        pub n: Option<i64>,
        /// True to report log probabilities of the output tokens.
        pub logprobs: Option<bool>,
        /// Number of alternatives to report per output token, 0 to 20. Requires `logprobs`.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        #[schemars(range(min = 0, max = 20))]
        pub top_logprobs: Option<i64>,
        /// Seed for reproducible sampling, where the model supports it.
        #[serde(default, deserialize_with = "wire::integer_or_null")]
        pub seed: Option<i64>,
        /// Reasoning effort.
        pub reasoning_effort: Option<Effort>,
        /// The client's identifier for its end user.
        pub user: Option<String>,
        /// The requested output modalities. `audio` is rejected unless the model's rules allow it.
        pub modalities: Option<Vec<String>>,
        /// Options of audio output. Rejected unless the model's rules allow it.
        pub audio: Option<Json>,
        /// Options of a hosted web search. Rejected unless the model's rules allow it.
        pub web_search_options: Option<Json>,
        /// The predecessor of `tools`. Rejected.
        pub functions: Option<Json>,
        /// The predecessor of `tool_choice`. Rejected.
        pub function_call: Option<Json>,
    }
}

impl Request {
    /// Parses a request body.
    ///
    /// # Errors
    /// Returns every violation of the request schema, each with its path.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// Returns true if the client requested a stream.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.stream == Some(true)
    }

    /// Returns true if the stream is to end with a usage chunk.
    #[must_use]
    pub fn includes_usage(&self) -> bool {
        self.stream_options
            .as_ref()
            .and_then(|options| options.include_usage)
            == Some(true)
    }

    /// Returns the output limit in tokens, under either name.
    #[must_use]
    pub fn output_cap(&self) -> Option<i64> {
        self.max_completion_tokens.or(self.max_tokens)
    }
}

wire::open_structs! {
    /// Options of the stream.
    #[derive(Default)]
    pub struct StreamOptions {
        /// True to end the stream with a usage chunk.
        pub include_usage: Option<bool>,
    }
}

wire::tagged! {
    /// One message of the conversation, tagged by its role.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message("role") {
        /// System instructions that precede the conversation.
        System(SystemMessage) = "system",
        /// The successor of `system`.
        Developer(SystemMessage) = "developer",
        /// A message of the user.
        User(UserMessage) = "user",
        /// A message of the model.
        Assistant(AssistantMessage) = "assistant",
        /// The result of a tool call.
        Tool(ToolMessage) = "tool",
        /// The predecessor of the tool message.
        Function(FunctionMessage) = "function",
    }
}

impl Message {
    /// Returns true if the message, or a call in it, has members that the protocol does not define. Servers
    /// put opaque data of their own into some of these. A message with an unknown role has only such members.
    #[must_use]
    pub fn has_extra(&self) -> bool {
        let has_extra = |call: &ToolCall| match call {
            ToolCall::Function(call) => !call.extra.is_empty(),
            ToolCall::Custom(call) => !call.extra.is_empty(),
            ToolCall::Other(_) => true,
        };
        match self {
            Self::System(message) | Self::Developer(message) => !message.extra.is_empty(),
            Self::User(message) => !message.extra.is_empty(),
            Self::Assistant(message) => {
                let mut calls = message.tool_calls.iter().flatten();
                !message.extra.is_empty() || calls.any(has_extra)
            }
            Self::Tool(message) => !message.extra.is_empty(),
            Self::Function(message) => !message.extra.is_empty(),
            Self::Other(_) => true,
        }
    }
}

wire::open_structs! {
    /// System instructions that precede the conversation.
    pub struct SystemMessage {
        /// The instructions; text parts only.
        pub content: TextOr<Part>,
    }

    /// A message of the user.
    pub struct UserMessage {
        /// Text, image, audio and file parts.
        pub content: TextOr<Part>,
    }

    /// A message of the model from an earlier turn: text and calls.
    #[derive(Default)]
    pub struct AssistantMessage {
        /// The output text. Only null or absent if there are calls or a refusal.
        pub content: Option<TextOr<Part>>,
        /// The text of the refusal.
        pub refusal: Option<String>,
        /// The reasoning that preceded the output.
        pub reasoning_content: Option<String>,
        /// An alternative name of `reasoning_content`.
        pub reasoning: Option<String>,
        /// The calls that the model made.
        pub tool_calls: Option<Vec<ToolCall>>,
    }

    /// The result of a tool call.
    pub struct ToolMessage {
        /// The id of the call that this is the result of.
        pub tool_call_id: String,
        /// The output of the tool; text parts only.
        pub content: TextOr<Part>,
    }
}

/// The predecessor of the tool message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct FunctionMessage {
    /// The name of the function that was called.
    pub name: String,
    /// The output of the function.
    pub content: Option<String>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// One part of a message's content.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Part("type") {
        /// A text part.
        Text(TextPart) = "text",
        /// An image.
        Image(ImagePart) = "image_url",
        /// An audio recording.
        Audio(AudioPart) = "input_audio",
        /// A document.
        File(FilePart) = "file",
        /// A refusal by the model.
        Refusal(RefusalPart) = "refusal",
    }
}

wire::open_structs! {
    /// A text part.
    pub struct TextPart {
        /// The text.
        pub text: String,
    }

    /// An image.
    pub struct ImagePart {
        /// The location of the image.
        pub image_url: ImageUrl,
    }

    /// The location of an image. A bare string is accepted for `{"url": …}`.
    #[serde(from = "ImageUrlForm")]
    pub struct ImageUrl {
        /// A data URL or a public https URL.
        pub url: String,
        /// Image detail level: `auto`, `low` or `high`.
        pub detail: Option<String>,
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum ImageUrlForm {
    Bare(String),
    Object {
        url: String,
        detail: Option<String>,
        #[serde(flatten)]
        extra: Object,
    },
}

impl From<ImageUrlForm> for ImageUrl {
    fn from(form: ImageUrlForm) -> Self {
        match form {
            ImageUrlForm::Bare(url) => Self {
                url,
                detail: None,
                extra: Object::new(),
            },
            ImageUrlForm::Object { url, detail, extra } => Self { url, detail, extra },
        }
    }
}

wire::open_structs! {
    /// An audio recording.
    pub struct AudioPart {
        /// The audio data and its format.
        pub input_audio: Json,
    }

    /// A document.
    pub struct FilePart {
        /// The document.
        pub file: FileSource,
    }

    /// The content of a document.
    #[derive(Default)]
    pub struct FileSource {
        /// The name of the file.
        pub filename: Option<String>,
        /// The content as a data URL.
        pub file_data: Option<String>,
        /// The id of a stored file. Rejected unless the rules allow it.
        pub file_id: Option<String>,
    }

    /// A refusal by the model.
    pub struct RefusalPart {
        /// The text of the refusal.
        pub refusal: String,
    }
}

wire::tagged! {
    /// A call made by the model.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolCall("type") {
        /// A function call.
        Function(FunctionToolCall) = "function",
        /// A call of a custom tool, whose input is free text.
        Custom(CustomToolCall) = "custom",
    }
    untagged |members| ["function"] { members.has("function").then_some("function") }
}

wire::open_structs! {
    /// A call of a function.
    pub struct FunctionToolCall {
        /// The call id, by which the result refers to the call.
        pub id: String,
        /// The name and the arguments of the function.
        pub function: FunctionCall,
    }
}

wire::closed_structs! {
    /// The name and the arguments of a function.
    pub struct FunctionCall {
        /// The name of the function.
        pub name: String,
        /// The arguments as the model wrote them: normally a JSON object, but not guaranteed to be
        /// one.
        pub arguments: String,
    }
}

wire::open_structs! {
    /// A call of a custom tool, whose input is free text.
    pub struct CustomToolCall {
        /// The call id, by which the result refers to the call.
        pub id: String,
        /// The name and the input of the tool.
        pub custom: Json,
    }
}

wire::tagged! {
    /// A tool that the model may call.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Tool("type") {
        /// A function.
        Function(FunctionTool) = "function",
        /// A custom tool, whose input is free text.
        Custom(CustomTool) = "custom",
    }
}

wire::open_structs! {
    /// A function that the model may call.
    pub struct FunctionTool {
        /// The function.
        pub function: ToolFunction,
    }

    /// The definition of a function.
    pub struct ToolFunction {
        /// The name by which the model calls it.
        pub name: String,
        /// A description of its purpose, for the model.
        pub description: Option<String>,
        /// A JSON Schema of the arguments.
        pub parameters: Option<Json>,
        /// True to enforce the schema of the arguments exactly.
        pub strict: Option<bool>,
    }

    /// A custom tool, whose input is free text.
    pub struct CustomTool {
        /// The name, description and format of the tool.
        pub custom: Json,
    }
}

/// Controls whether the model calls tools: a mode, or an object that selects tools.
pub type ToolChoice = WordOr<ToolMode, ToolChoiceObject>;

wire::tagged! {
    /// A selection of tools.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolChoiceObject("type") {
        /// The model must call this function.
        Function(FunctionChoice) = "function",
        /// The model may only call these tools.
        AllowedTools(AllowedToolsChoice) = "allowed_tools",
        /// The model must call this custom tool.
        Custom(CustomChoice) = "custom",
    }
}

wire::closed_structs! {
    /// The function that the model must call.
    pub struct FunctionChoice {
        /// The function.
        pub function: FunctionName,
    }

    /// A reference to a function by name.
    pub struct FunctionName {
        /// The name.
        pub name: String,
    }

    /// The tools that the model may call.
    pub struct AllowedToolsChoice {
        /// The tools, and whether the model must call one.
        pub allowed_tools: AllowedTools,
    }

    /// The tools that the model may call, and whether it must call one.
    pub struct AllowedTools {
        /// `auto` or `required`. `None` means `auto`.
        pub mode: Option<ToolMode>,
        /// The tools, each in the form that `tool_choice` takes.
        pub tools: Vec<ToolChoiceObject>,
    }

    /// The custom tool that the model must call.
    pub struct CustomChoice {
        /// The tool.
        pub custom: FunctionName,
    }
}

wire::tagged! {
    /// The format of the output text.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ResponseFormat("type") {
        /// Free text.
        Text(PlainFormat) = "text",
        /// Any JSON object. The prompt must ask for JSON as well.
        JsonObject(PlainFormat) = "json_object",
        /// JSON that conforms to a schema.
        JsonSchema(JsonSchemaFormat) = "json_schema",
    }
}

wire::open_structs! {
    /// A format without options.
    #[derive(Default)]
    pub struct PlainFormat {}

    /// JSON that conforms to a schema.
    pub struct JsonSchemaFormat {
        /// The schema.
        pub json_schema: NamedSchema,
    }

    /// A named JSON Schema.
    pub struct NamedSchema {
        /// The name.
        pub name: String,
        /// A description of the schema's purpose, for the model.
        pub description: Option<String>,
        /// The JSON Schema.
        pub schema: Option<Json>,
        /// True to enforce the schema exactly.
        pub strict: Option<bool>,
    }
}
