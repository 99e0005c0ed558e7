//! The request: `POST /v1/chat/completions` (spec §4.3, wire-reference §2.1–2.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Json, Object, TextOr, Violations, WordOr};

wire::objects!(FunctionCall, FunctionChoice, FunctionName, AllowedToolsChoice, AllowedTools, CustomChoice);

/// A request for a chat completion.
///
/// Optional fields are `None` when absent or null; what is not named here is kept in `extra`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The model.
    pub model: String,
    /// The conversation, oldest first; the caller sends all of it each time.
    pub messages: Vec<Message>,
    /// The most tokens to generate.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<i64>,
    /// The newer name of `max_tokens`.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_completion_tokens: Option<i64>,
    /// Whether to answer as a stream of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// How to stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
    /// The form of the answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// What the model may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether it may, must or must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether several calls at once are welcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// 0 to 2: how freely to draw the next token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// 0 to 1: draw among the likeliest tokens that make up this share.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// −2 to 2: against tokens that occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2, max = 2))]
    pub presence_penalty: Option<f64>,
    /// −2 to 2: against tokens by how often they occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2, max = 2))]
    pub frequency_penalty: Option<f64>,
    /// One to four texts that end the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<TextOr<String>>,
    /// How many answers.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub n: Option<i64>,
    /// Whether to tell how likely each token was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<bool>,
    /// How many alternatives of each token to tell; needs `logprobs`.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub top_logprobs: Option<i64>,
    /// The same seed gives the same answer, where the model can.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// How hard to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
    /// The caller's own name for its end user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The forms of output asked for; only text is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modalities: Option<Vec<String>>,
    /// How spoken output should sound; not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<Json>,
    /// Options of a search by the server; not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_search_options: Option<Json>,
    /// The old form of `tools`; not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<Json>,
    /// The old form of `tool_choice`; not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_call: Option<Json>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Request {
    /// Reads a request body.
    ///
    /// # Errors
    /// Everything that keeps the body from being a request, with paths.
    pub fn read(body: &[u8]) -> Result<Self, Violations> {
        wire::read(body)
    }

    /// Whether a stream is asked for.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.stream == Some(true)
    }

    /// Whether the stream is to tell the usage at its end.
    #[must_use]
    pub fn includes_usage(&self) -> bool {
        self.stream_options.as_ref().and_then(|options| options.include_usage) == Some(true)
    }

    /// The cap on the output under either of its names.
    #[must_use]
    pub fn output_cap(&self) -> Option<i64> {
        self.max_completion_tokens.or(self.max_tokens)
    }
}

/// How to stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamOptions {
    /// Whether a last chunk tells the usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_usage: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// One message of the conversation, told apart by its role.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message("role") {
        /// Instructions above the conversation.
        System(SystemMessage) = "system",
        /// The newer name of `system`.
        Developer(SystemMessage) = "developer",
        /// What the user says.
        User(UserMessage) = "user",
        /// What the model said and called.
        Assistant(AssistantMessage) = "assistant",
        /// What came of a call.
        Tool(ToolMessage) = "tool",
        /// The old form of a tool message.
        Function(FunctionMessage) = "function",
    }
}

/// Instructions above the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemMessage {
    /// The instructions; text parts alone.
    pub content: TextOr<Part>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What the user says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// Text, pictures and the like.
    pub content: TextOr<Part>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What the model said and called in an earlier turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// What it said; null or absent only beside calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<TextOr<Part>>,
    /// What it said in refusing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// What it thought before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Another name for `reasoning_content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What it called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolMessage {
    /// The id of the call.
    pub tool_call_id: String,
    /// What the tool said; text parts alone.
    pub content: TextOr<Part>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// The old form of a tool message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionMessage {
    /// The function that was called.
    pub name: String,
    /// What it said.
    pub content: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// One part of a message's content.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Part("type") {
        /// Text.
        Text(TextPart) = "text",
        /// A picture.
        Image(ImagePart) = "image_url",
        /// A recording.
        Audio(AudioPart) = "input_audio",
        /// A document.
        File(FilePart) = "file",
        /// A refusal, in what the model said.
        Refusal(RefusalPart) = "refusal",
    }
}

/// Text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImagePart {
    /// Where its bytes are.
    pub image_url: ImageUrl,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Where the bytes of a picture are. A bare string is taken for `{"url": …}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ImageUrlForm")]
pub struct ImageUrl {
    /// A Data URL, or a public https address.
    pub url: String,
    /// How closely to look: `auto`, `low` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Every other field, as it came.
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

/// A recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AudioPart {
    /// Its data and format.
    pub input_audio: Json,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilePart {
    /// The document.
    pub file: FileSource,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Where a document's bytes are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileSource {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Its bytes as a Data URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_data: Option<String>,
    /// The id of a stored file; not served, nothing is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A refusal, in what the model said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefusalPart {
    /// The text of it.
    pub refusal: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// A call that the model made.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolCall("type") {
        /// Of a function.
        Function(FunctionToolCall) = "function",
        /// Of a tool with free text as its input.
        Custom(CustomToolCall) = "custom",
    }
    untagged |members| ["function"] { members.has("function").then_some("function") }
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionToolCall {
    /// The id by which the result refers to the call.
    pub id: String,
    /// The function and its arguments.
    pub function: FunctionCall,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A function and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct FunctionCall {
    /// The function.
    pub name: String,
    /// The arguments as the model wrote them: usually, but not surely, a JSON object.
    pub arguments: String,
}

/// A call of a tool with free text as its input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomToolCall {
    /// The id by which the result refers to the call.
    pub id: String,
    /// The tool and its input.
    pub custom: Json,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// What the model may call.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Tool("type") {
        /// A function.
        Function(FunctionTool) = "function",
        /// A tool with free text as its input.
        Custom(CustomTool) = "custom",
    }
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionTool {
    /// The function.
    pub function: ToolFunction,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A function's name, purpose and arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFunction {
    /// Its name, by which it is called.
    pub name: String,
    /// What it does, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Json>,
    /// Whether the arguments must fit the schema exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A tool with free text as its input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomTool {
    /// Its name, purpose and format.
    pub custom: Json,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Whether tools may, must or must not be called: a word, or an object that names them.
pub type ToolChoice = WordOr<ToolMode, ToolChoiceObject>;

wire::open_enum! {
    /// Whether tools may, must or must not be called.
    pub enum ToolMode {
        /// They must not.
        None = "none",
        /// The model decides.
        Auto = "auto",
        /// At least one must.
        Required = "required",
    }
}

wire::tagged! {
    /// Which tools may or must be called.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolChoiceObject("type") {
        /// This function must be called.
        Function(FunctionChoice) = "function",
        /// Only these may be called.
        AllowedTools(AllowedToolsChoice) = "allowed_tools",
        /// This custom tool must be called.
        Custom(CustomChoice) = "custom",
    }
}

/// The function that must be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct FunctionChoice {
    /// The function.
    pub function: FunctionName,
}

/// A function by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct FunctionName {
    /// Its name.
    pub name: String,
}

/// The tools that alone may be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct AllowedToolsChoice {
    /// Which, and whether one must.
    pub allowed_tools: AllowedTools,
}

/// Which tools may be called, and whether one must.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct AllowedTools {
    /// `auto`, which it also is when absent, or `required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolMode>,
    /// The tools, each as `tool_choice` would name it.
    pub tools: Vec<ToolChoiceObject>,
}

/// The custom tool that must be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct CustomChoice {
    /// The tool.
    pub custom: FunctionName,
}

wire::tagged! {
    /// The form of the answer's text.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ResponseFormat("type") {
        /// Free text.
        Text(PlainFormat) = "text",
        /// Any JSON object; the prompt must ask for JSON too.
        JsonObject(PlainFormat) = "json_object",
        /// JSON that fits a schema.
        JsonSchema(JsonSchemaFormat) = "json_schema",
    }
}

/// A form of which there is no more to say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlainFormat {
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// JSON that fits a schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JsonSchemaFormat {
    /// The schema.
    pub json_schema: NamedSchema,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A JSON Schema with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedSchema {
    /// Its name.
    pub name: String,
    /// What it is for, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json>,
    /// Whether the answer must fit it exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// How hard to think.
    pub enum Effort {
        /// Not at all.
        None = "none",
        /// As little as can be.
        Minimal = "minimal",
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
