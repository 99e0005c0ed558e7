//! The request: `POST /v1/responses` (spec §4.2, wire-reference §1.1–1.4).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use wire::{Json, Object, TextOr, Violations, WordOr};

use crate::response::Status;

/// A request for a response.
///
/// Optional fields are `None` when absent or null; what is not named here is kept in `extra`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The model.
    pub model: String,
    /// The conversation, oldest first; the caller sends all of it each time. A text is one message of the user.
    pub input: TextOr<Item>,
    /// Instructions above the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The most tokens to generate, thoughts included.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<i64>,
    /// Whether to answer as a stream of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// How to stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
    /// What the model may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether it may, must or must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether several calls at once are welcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The most calls of hosted tools.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<i64>,
    /// 0 to 2: how freely to draw the next token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1: draw among the likeliest tokens that make up this share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// −2 to 2: against tokens that occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// −2 to 2: against tokens by how often they occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// How many alternatives of each token to tell.
    #[serde(default, deserialize_with = "wire::integer_or_null", skip_serializing_if = "Option::is_none")]
    pub top_logprobs: Option<i64>,
    /// The form of the answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<TextOptions>,
    /// Whether and how to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningOptions>,
    /// What more to tell; see [`Request::includes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<String>>,
    /// Up to 16 notes of the caller's own, repeated in the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// Whether to keep the response; nothing is ever kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<bool>,
    /// The response to go on from; not served, nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_response_id: Option<String>,
    /// The stored conversation to go on with; not served, nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Json>,
    /// A stored prompt; not served, nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Json>,
    /// Whether to answer later; `true` is not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// What to do with a conversation that is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
    /// The class of service asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// The caller's own name for its end user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The newer name of `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safety_identifier: Option<String>,
    /// Requests with the same key are likely to share a cached prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache_key: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Request {
    /// The word of `include` that asks for the seal on the thoughts.
    pub const ENCRYPTED_REASONING: &'static str = "reasoning.encrypted_content";
    /// The word of `include` that asks how likely each token was.
    pub const LOGPROBS: &'static str = "message.output_text.logprobs";

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

    /// Whether the deltas of the stream are to be padded.
    #[must_use]
    pub fn includes_obfuscation(&self) -> bool {
        self.stream_options.as_ref().and_then(|options| options.include_obfuscation) == Some(true)
    }

    /// Whether `include` has the word.
    #[must_use]
    pub fn includes(&self, word: &str) -> bool {
        self.include.iter().flatten().any(|included| included == word)
    }
}

/// How to stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamOptions {
    /// Whether to pad the deltas, so that their sizes tell less about their texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_obfuscation: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// One item of the conversation. Hosted tools have many more kinds: they are `Other`.
    ///
    /// Without a type it is a message when it has a role, and of the kind `""` otherwise.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Item("type") {
        /// What somebody says.
        Message(Message) = "message",
        /// What the model called.
        FunctionCall(FunctionCall) = "function_call",
        /// What came of a call.
        FunctionCallOutput(FunctionCallOutput) = "function_call_output",
        /// What the model thought.
        Reasoning(Reasoning) = "reasoning",
        /// A call of a tool with free text as its input.
        CustomToolCall(CustomToolCall) = "custom_tool_call",
        /// What came of such a call.
        CustomToolCallOutput(CustomToolCallOutput) = "custom_tool_call_output",
        /// An item by its id; not served, nothing is kept.
        ItemReference(ItemReference) = "item_reference",
    }
    untagged { "role" => "message" }
}

/// What somebody says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The id under which the model said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How far it had got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Who.
    pub role: Role,
    /// What.
    pub content: TextOr<Part>,
    /// Whether the model said it as its answer or on the way there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// Who says it.
    pub enum Role {
        /// The user.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// Instructions.
        System = "system",
        /// The newer name of `system`.
        Developer = "developer",
    }
}

wire::open_enum! {
    /// Whether a message of the model is its answer (wire-reference §1.7).
    pub enum Phase {
        /// On the way: calls follow.
        Commentary = "commentary",
        /// The answer that ends the turn.
        FinalAnswer = "final_answer",
    }
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCall {
    /// `fc_…`; always there in what a model says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How far it got; always there in what a model says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The id by which the result refers to the call.
    pub call_id: String,
    /// The function.
    pub name: String,
    /// Its arguments as the model wrote them: JSON, as a rule.
    pub arguments: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What came of a call of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCallOutput {
    /// The id of the call.
    pub call_id: String,
    /// What the function said: a text, or text, pictures and documents.
    pub output: TextOr<Part>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What the model thought.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reasoning {
    /// `rs_…`; always there in what a model says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The thoughts in short.
    pub summary: Vec<ReasoningPart>,
    /// The thoughts themselves; read from others, never written by this gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<ReasoningPart>>,
    /// The model's own seal on them, by which it knows them again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_content: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// A piece of what the model thought.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ReasoningPart("type") {
        /// In short.
        Summary(TextPart) = "summary_text",
        /// In full.
        Text(TextPart) = "reasoning_text",
    }
}

/// A call of a tool with free text as its input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomToolCall {
    /// The id by which the result refers to the call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Its input.
    pub input: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What came of a call of a tool with free text as its input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomToolCallOutput {
    /// The id of the call.
    pub call_id: String,
    /// What the tool said.
    pub output: TextOr<Part>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// An item by its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemReference {
    /// The id.
    pub id: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// One part of a message's content, or of what came of a call.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Part("type") {
        /// Text that the model is told.
        InputText(TextPart) = "input_text",
        /// A picture.
        Image(ImagePart) = "input_image",
        /// A document.
        File(FilePart) = "input_file",
        /// A recording.
        Audio(AudioPart) = "input_audio",
        /// Text that the model said.
        OutputText(TextPart) = "output_text",
        /// A refusal that the model said.
        Refusal(RefusalPart) = "refusal",
        /// Text, whoever said it.
        Text(TextPart) = "text",
    }
}

/// Text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImagePart {
    /// A Data URL, or a public https address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    /// How closely to look: `auto`, `low`, `high` or `original`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The id of a stored file; not served, nothing is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilePart {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Its bytes as a Data URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_data: Option<String>,
    /// A public https address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_url: Option<String>,
    /// The id of a stored file; not served, nothing is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
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

/// A refusal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefusalPart {
    /// The text of it.
    pub refusal: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// What the model may call. Hosted tools are `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Tool("type") {
        /// A function.
        Function(FunctionTool) = "function",
    }
}

/// A function that the model may call.
///
/// The form of Chat Completions, with everything inside `function`, is taken for this one. All fields are always
/// written, as responses must (wire-reference §1.4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "FunctionToolForm")]
pub struct FunctionTool {
    /// Its name, by which it is called.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// A JSON Schema of its arguments.
    pub parameters: Option<Json>,
    /// Whether the arguments must fit the schema exactly.
    pub strict: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("anyOf" = either_of("name", "function")))]
struct FunctionToolForm {
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "String")]
    name: Option<String>,
    description: Option<String>,
    parameters: Option<Json>,
    strict: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "FunctionDefinition")]
    function: Option<FunctionDefinition>,
    #[serde(flatten)]
    extra: Object,
}

#[derive(Deserialize, JsonSchema)]
struct FunctionDefinition {
    name: String,
    description: Option<String>,
    parameters: Option<Json>,
    strict: Option<bool>,
    #[serde(flatten)]
    extra: Object,
}

impl TryFrom<FunctionToolForm> for FunctionTool {
    type Error = &'static str;

    fn try_from(form: FunctionToolForm) -> Result<Self, Self::Error> {
        let FunctionToolForm { name, description, parameters, strict, function, mut extra } = form;
        match (name, function) {
            (Some(name), _) => Ok(Self { name, description, parameters, strict, extra }),
            (None, Some(function)) => {
                extra.extend(function.extra);
                Ok(Self {
                    name: function.name,
                    description: function.description.or(description),
                    parameters: function.parameters.or(parameters),
                    strict: function.strict.or(strict),
                    extra,
                })
            }
            (None, None) => Err("missing field `name`"),
        }
    }
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
    /// Which tools may or must be called. A hosted tool that must be called is `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum ToolChoiceObject("type") {
        /// This function must be called.
        Function(FunctionChoice) = "function",
        /// Only these may be called.
        AllowedTools(AllowedTools) = "allowed_tools",
    }
}

/// The function that must be called. The form of Chat Completions is taken for this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "FunctionChoiceForm")]
pub struct FunctionChoice {
    /// Its name.
    pub name: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(extend("anyOf" = either_of("name", "function")))]
struct FunctionChoiceForm {
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "String")]
    name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "FunctionName")]
    function: Option<FunctionName>,
}

#[derive(Deserialize, JsonSchema)]
struct FunctionName {
    name: String,
}

impl TryFrom<FunctionChoiceForm> for FunctionChoice {
    type Error = &'static str;

    fn try_from(form: FunctionChoiceForm) -> Result<Self, Self::Error> {
        let name = form.name.or(form.function.map(|function| function.name));
        name.map(|name| Self { name }).ok_or("missing field `name`")
    }
}

/// The tools that alone may be called, and whether one must.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllowedTools {
    /// `auto`, which it also is when absent, or `required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolMode>,
    /// The tools, each as `tool_choice` would name it.
    pub tools: Vec<ToolChoiceObject>,
}

/// The form of the answer's text. The default is free text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextOptions {
    /// Free text or JSON. Absent: free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// How much to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { format: Some(Format::Text(PlainFormat::default())), verbosity: None, extra: Object::new() }
    }
}

wire::tagged! {
    /// Free text or JSON.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Format("type") {
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
    /// The schema's name.
    pub name: String,
    /// What it is for, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema.
    pub schema: Json,
    /// Whether the answer must fit it exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_enum! {
    /// How much to say.
    pub enum Verbosity {
        /// Little.
        Low = "low",
        /// Middling.
        Medium = "medium",
        /// Much.
        High = "high",
    }
}

/// Whether and how to think. `effort` and `summary` are always written, as responses must (wire-reference §1.5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasoningOptions {
    /// How hard.
    pub effort: Option<Effort>,
    /// How much of the thoughts to tell.
    pub summary: Option<Summary>,
    /// The old name of `summary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_summary: Option<Summary>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl ReasoningOptions {
    /// How much of the thoughts to tell, under either of its names.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref().or(self.generate_summary.as_ref())
    }
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

wire::open_enum! {
    /// How much of the thoughts to tell.
    pub enum Summary {
        /// The model decides.
        Auto = "auto",
        /// Little.
        Concise = "concise",
        /// Much.
        Detailed = "detailed",
    }
}

wire::open_enum! {
    /// What to do with a conversation that is too long for the model.
    pub enum Truncation {
        /// Leave out of its middle.
        Auto = "auto",
        /// Refuse it.
        Disabled = "disabled",
    }
}

impl Default for Truncation {
    fn default() -> Self {
        Self::Disabled
    }
}

/// Reads a member that may be absent but not null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The schema of an object that has at least one of two members.
fn either_of(one: &str, other: &str) -> serde_json::Value {
    serde_json::json!([
        { "properties": { one: true }, "required": [one] },
        { "properties": { other: true }, "required": [other] },
    ])
}
