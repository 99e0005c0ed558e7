//! The request body of `POST /v1/chat/completions`. See <https://platform.openai.com/docs/api-reference/chat/create>.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Json, Object, TextOr, Violations, WordOr};

wire::objects!(FunctionCall, FunctionChoice, FunctionName, AllowedToolsChoice, AllowedTools, CustomChoice);

wire::constructors! {
    SystemMessage(content: TextOr<Part>; extra);
    UserMessage(content: TextOr<Part>; extra);
    ToolMessage(tool_call_id: String, content: TextOr<Part>; extra);
    FunctionMessage(name: String; content, extra);
    TextPart(text: String; extra);
    ImagePart(image_url: ImageUrl; extra);
    ImageUrl(url: String; detail, extra);
    AudioPart(input_audio: Json; extra);
    FilePart(file: FileSource; extra);
    RefusalPart(refusal: String; extra);
    FunctionToolCall(id: String, function: FunctionCall; extra);
    FunctionCall(name: String, arguments: String;);
    CustomToolCall(id: String, custom: Json; extra);
    FunctionTool(function: ToolFunction; extra);
    ToolFunction(name: String; description, parameters, strict, extra);
    CustomTool(custom: Json; extra);
    FunctionChoice(function: FunctionName;);
    FunctionName(name: String;);
    AllowedToolsChoice(allowed_tools: AllowedTools;);
    AllowedTools(tools: Vec<ToolChoiceObject>; mode);
    CustomChoice(custom: FunctionName;);
    JsonSchemaFormat(json_schema: NamedSchema; extra);
    NamedSchema(name: String; description, schema, strict, extra);
}

/// A request for a chat completion.
///
/// Optional fields are `None` when absent or null; unrecognized fields are kept in `extra`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Request {
    /// The id of the model.
    pub model: String,
    /// The conversation, oldest message first. Nothing is stored, so every request carries all of it.
    pub messages: Vec<Message>,
    /// Maximum number of tokens to generate; at least 1.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<i64>,
    /// The successor of `max_tokens`; at least 1.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_completion_tokens: Option<i64>,
    /// True to stream the response as server-sent events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Options of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
    /// The format of the output text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// The tools that the model may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Controls whether the model calls tools, and which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// True if the model may make several calls in one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Sampling temperature, 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Nucleus sampling: the probability mass to sample from, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// Penalty for tokens that already appeared, −2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2, max = 2))]
    pub presence_penalty: Option<f64>,
    /// Penalty for tokens in proportion to how often they appeared, −2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2, max = 2))]
    pub frequency_penalty: Option<f64>,
    /// One to four stop sequences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<TextOr<String>>,
    /// Number of choices to generate, 1 to 128. Values above 1 are rejected unless the model's rules allow them.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub n: Option<i64>,
    /// True to report log probabilities of the output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<bool>,
    /// Number of alternatives to report per output token, 0 to 20. Requires `logprobs`.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub top_logprobs: Option<i64>,
    /// Seed for reproducible sampling, where the model supports it.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Reasoning effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
    /// The client's identifier for its end user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The requested output modalities. `audio` is rejected unless the model's rules allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modalities: Option<Vec<String>>,
    /// Options of audio output. Rejected unless the model's rules allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<Json>,
    /// Options of a hosted web search. Rejected unless the model's rules allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_search_options: Option<Json>,
    /// The predecessor of `tools`. Rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<Json>,
    /// The predecessor of `tool_choice`. Rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_call: Option<Json>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

impl Request {
    /// Creates a request from its required fields. All others are absent.
    #[must_use]
    pub fn new(model: String, messages: Vec<Message>) -> Self {
        Self { model, messages, ..Self::default() }
    }

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
        self.stream_options.as_ref().and_then(|options| options.include_usage) == Some(true)
    }

    /// Returns the output limit in tokens, under either name.
    #[must_use]
    pub fn output_cap(&self) -> Option<i64> {
        self.max_completion_tokens.or(self.max_tokens)
    }
}

/// Options of the stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct StreamOptions {
    /// True to end the stream with a usage chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_usage: Option<bool>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
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

/// System instructions that precede the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SystemMessage {
    /// The instructions; text parts only.
    pub content: TextOr<Part>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// A message of the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct UserMessage {
    /// Text, image, audio and file parts.
    pub content: TextOr<Part>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// A message of the model from an earlier turn: text and calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AssistantMessage {
    /// The output text. Only null or absent if there are calls or a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<TextOr<Part>>,
    /// The text of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The reasoning that preceded the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// An alternative name of `reasoning_content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The calls that the model made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ToolMessage {
    /// The id of the call that this is the result of.
    pub tool_call_id: String,
    /// The output of the tool; text parts only.
    pub content: TextOr<Part>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
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

/// A text part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ImagePart {
    /// The location of the image.
    pub image_url: ImageUrl,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// The location of an image. A bare string is accepted for `{"url": …}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ImageUrlForm")]
#[non_exhaustive]
pub struct ImageUrl {
    /// A data URL or a public https URL.
    pub url: String,
    /// Image detail level: `auto`, `low` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
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
            ImageUrlForm::Bare(url) => Self { url, detail: None, extra: Object::new() },
            ImageUrlForm::Object { url, detail, extra } => Self { url, detail, extra },
        }
    }
}

/// An audio recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AudioPart {
    /// The audio data and its format.
    pub input_audio: Json,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct FilePart {
    /// The document.
    pub file: FileSource,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// The content of a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct FileSource {
    /// The name of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The content as a data URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_data: Option<String>,
    /// The id of a stored file. Rejected: nothing is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// A refusal by the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RefusalPart {
    /// The text of the refusal.
    pub refusal: String,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
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

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct FunctionToolCall {
    /// The call id, by which the result refers to the call.
    pub id: String,
    /// The name and the arguments of the function.
    pub function: FunctionCall,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// The name and the arguments of a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct FunctionCall {
    /// The name of the function.
    pub name: String,
    /// The arguments as the model wrote them: normally a JSON object, but not guaranteed to be one.
    pub arguments: String,
}

/// A call of a custom tool, whose input is free text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CustomToolCall {
    /// The call id, by which the result refers to the call.
    pub id: String,
    /// The name and the input of the tool.
    pub custom: Json,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
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

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct FunctionTool {
    /// The function.
    pub function: ToolFunction,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// The definition of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ToolFunction {
    /// The name by which the model calls it.
    pub name: String,
    /// A description of its purpose, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Json>,
    /// True to enforce the schema of the arguments exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// A custom tool, whose input is free text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CustomTool {
    /// The name, description and format of the tool.
    pub custom: Json,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// Controls whether the model calls tools: a mode, or an object that selects tools.
pub type ToolChoice = WordOr<ToolMode, ToolChoiceObject>;

wire::open_enum! {
    /// Controls whether the model calls tools.
    pub enum ToolMode {
        /// The model must not call tools.
        None = "none",
        /// The model decides whether to call tools.
        Auto = "auto",
        /// The model must call at least one tool.
        Required = "required",
    }
}

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

/// The function that the model must call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct FunctionChoice {
    /// The function.
    pub function: FunctionName,
}

/// A reference to a function by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct FunctionName {
    /// The name.
    pub name: String,
}

/// The tools that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct AllowedToolsChoice {
    /// The tools, and whether the model must call one.
    pub allowed_tools: AllowedTools,
}

/// The tools that the model may call, and whether it must call one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct AllowedTools {
    /// `auto` or `required`. `None` means `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolMode>,
    /// The tools, each in the form that `tool_choice` takes.
    pub tools: Vec<ToolChoiceObject>,
}

/// The custom tool that the model must call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct CustomChoice {
    /// The tool.
    pub custom: FunctionName,
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

/// A format without options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PlainFormat {
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// JSON that conforms to a schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct JsonSchemaFormat {
    /// The schema.
    pub json_schema: NamedSchema,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

/// A named JSON Schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct NamedSchema {
    /// The name.
    pub name: String,
    /// A description of the schema's purpose, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json>,
    /// True to enforce the schema exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// Reasoning effort.
    pub enum Effort {
        /// No reasoning.
        None = "none",
        /// Minimal effort.
        Minimal = "minimal",
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
