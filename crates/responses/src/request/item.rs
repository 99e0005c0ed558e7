//! The items of a conversation and the parts of their contents (wire-reference §1.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Json, Object, TextOr};

use crate::response::Status;

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
