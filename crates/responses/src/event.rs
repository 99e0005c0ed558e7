//! The events of a stream: server-sent events with a name (spec §6.1, wire-reference §1.9).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sse::EventName;
use wire::{Json, Object};

use crate::request::ReasoningPart;
use crate::response::{OutputItem, OutputPart, Response, ResponseError, or_default};

wire::tagged! {
    /// One event of a stream. Events that this version does not know are `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event("type") {
        /// The stream begins.
        Created(ResponseEvent) = "response.created",
        /// The model begins.
        InProgress(ResponseEvent) = "response.in_progress",
        /// The success that ends a stream.
        Completed(ResponseEvent) = "response.completed",
        /// The answer was cut, and with it the stream ends.
        Incomplete(ResponseEvent) = "response.incomplete",
        /// The failure that ends a stream.
        Failed(ResponseEvent) = "response.failed",
        /// An item begins.
        OutputItemAdded(ItemEvent) = "response.output_item.added",
        /// An item ends.
        OutputItemDone(ItemEvent) = "response.output_item.done",
        /// A part of a message begins.
        ContentPartAdded(PartEvent) = "response.content_part.added",
        /// A part of a message ends.
        ContentPartDone(PartEvent) = "response.content_part.done",
        /// More text.
        OutputTextDelta(TextDelta) = "response.output_text.delta",
        /// All of the text.
        OutputTextDone(TextDone) = "response.output_text.done",
        /// A source of the text, or the like.
        OutputTextAnnotationAdded(AnnotationAdded) = "response.output_text.annotation.added",
        /// More of a refusal.
        RefusalDelta(RefusalDelta) = "response.refusal.delta",
        /// All of the refusal.
        RefusalDone(RefusalDone) = "response.refusal.done",
        /// More of a call's arguments.
        ArgumentsDelta(ArgumentsDelta) = "response.function_call_arguments.delta",
        /// All of the arguments.
        ArgumentsDone(ArgumentsDone) = "response.function_call_arguments.done",
        /// A part of the thoughts in short begins.
        SummaryPartAdded(SummaryPartEvent) = "response.reasoning_summary_part.added",
        /// A part of the thoughts in short ends.
        SummaryPartDone(SummaryPartEvent) = "response.reasoning_summary_part.done",
        /// More of the thoughts in short.
        SummaryTextDelta(SummaryTextDelta) = "response.reasoning_summary_text.delta",
        /// All of the part.
        SummaryTextDone(SummaryTextDone) = "response.reasoning_summary_text.done",
        /// More of the thoughts themselves; read from others, outside this gateway's own grammar.
        ReasoningTextDelta(ReasoningTextDelta) = "response.reasoning_text.delta",
        /// All of them.
        ReasoningTextDone(ReasoningTextDone) = "response.reasoning_text.done",
        /// A failure that ends a stream, told without a response.
        Error(ErrorEvent) = "error",
    }
}

impl Event {
    /// Reads the data of a server-sent event. Its type is told by the data, whatever the name beside it says.
    ///
    /// # Errors
    /// When it is no JSON object with a type, or does not fit its type.
    pub fn read(data: &str) -> Result<Self, EventError> {
        serde_json::from_str(data).map_err(|error| EventError(wire::json_fault(&error)))
    }

    /// The data of the server-sent event: one line of JSON.
    #[must_use]
    pub fn data(&self) -> String {
        // These types always have a JSON form: their keys are strings and their numbers finite.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Appends the event as it goes over the wire.
    pub fn write(&self, out: &mut Vec<u8>) {
        // A foreign type may be any text, even one that cannot be a name; the data has it anyway.
        sse::encode(EventName::new(self.kind()).ok(), &self.data(), out);
    }

    /// Whether a stream ends with this event.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Incomplete(_) | Self::Failed(_) | Self::Error(_))
    }

    /// The event's place in the stream, from 0, when it tells one.
    #[must_use]
    pub fn sequence_number(&self) -> Option<u64> {
        Some(match self {
            Self::Created(event)
            | Self::InProgress(event)
            | Self::Completed(event)
            | Self::Incomplete(event)
            | Self::Failed(event) => event.sequence_number,
            Self::OutputItemAdded(event) | Self::OutputItemDone(event) => event.sequence_number,
            Self::ContentPartAdded(event) | Self::ContentPartDone(event) => event.sequence_number,
            Self::OutputTextDelta(event) => event.sequence_number,
            Self::OutputTextDone(event) => event.sequence_number,
            Self::OutputTextAnnotationAdded(event) => event.sequence_number,
            Self::RefusalDelta(event) => event.sequence_number,
            Self::RefusalDone(event) => event.sequence_number,
            Self::ArgumentsDelta(event) => event.sequence_number,
            Self::ArgumentsDone(event) => event.sequence_number,
            Self::SummaryPartAdded(event) | Self::SummaryPartDone(event) => event.sequence_number,
            Self::SummaryTextDelta(event) => event.sequence_number,
            Self::SummaryTextDone(event) => event.sequence_number,
            Self::ReasoningTextDelta(event) => event.sequence_number,
            Self::ReasoningTextDone(event) => event.sequence_number,
            Self::Error(event) => return event.sequence_number,
            Self::Other(members) => return members.get("sequence_number")?.as_u64(),
        })
    }

    /// The id and the place of the item from whose inside the event comes.
    pub(crate) fn place(&self) -> Option<(&str, u32)> {
        Some(match self {
            Self::ContentPartAdded(event) | Self::ContentPartDone(event) => (&event.item_id, event.output_index),
            Self::OutputTextDelta(event) => (&event.item_id, event.output_index),
            Self::OutputTextDone(event) => (&event.item_id, event.output_index),
            Self::OutputTextAnnotationAdded(event) => (&event.item_id, event.output_index),
            Self::RefusalDelta(event) => (&event.item_id, event.output_index),
            Self::RefusalDone(event) => (&event.item_id, event.output_index),
            Self::ArgumentsDelta(event) => (&event.item_id, event.output_index),
            Self::ArgumentsDone(event) => (&event.item_id, event.output_index),
            Self::SummaryPartAdded(event) | Self::SummaryPartDone(event) => (&event.item_id, event.output_index),
            Self::SummaryTextDelta(event) => (&event.item_id, event.output_index),
            Self::SummaryTextDone(event) => (&event.item_id, event.output_index),
            _ => return None,
        })
    }
}

/// A server-sent event that is none of this protocol; the text says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventError(String);

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no event of a response: {}", self.0)
    }
}

impl std::error::Error for EventError {}

/// The response as it is: blank at the beginning, whole at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseEvent {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The response.
    pub response: Box<Response>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// An item as it is: blank at its beginning, whole at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemEvent {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The item's place in the output, from 0.
    pub output_index: u32,
    /// The item.
    pub item: OutputItem,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A part of a message as it is: blank at its beginning, whole at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartEvent {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The message.
    pub item_id: String,
    /// The message's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the message, from 0.
    pub content_index: u32,
    /// The part.
    pub part: OutputPart,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// More text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextDelta {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The message.
    pub item_id: String,
    /// The message's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the message, from 0.
    pub content_index: u32,
    /// The text.
    pub delta: String,
    /// How likely each token was, when that was asked for.
    #[serde(default, deserialize_with = "or_default")]
    pub logprobs: Vec<Json>,
    /// Padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obfuscation: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// All of the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextDone {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The message.
    pub item_id: String,
    /// The message's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the message, from 0.
    pub content_index: u32,
    /// The text.
    pub text: String,
    /// How likely each token was, when that was asked for.
    #[serde(default, deserialize_with = "or_default")]
    pub logprobs: Vec<Json>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A source of the text, or the like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnnotationAdded {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The message.
    pub item_id: String,
    /// The message's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the message, from 0.
    pub content_index: u32,
    /// The annotation's place in the part, from 0.
    pub annotation_index: u32,
    /// The annotation.
    pub annotation: Json,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// More of a refusal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefusalDelta {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The message.
    pub item_id: String,
    /// The message's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the message, from 0.
    pub content_index: u32,
    /// The text.
    pub delta: String,
    /// Padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obfuscation: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// All of the refusal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefusalDone {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The message.
    pub item_id: String,
    /// The message's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the message, from 0.
    pub content_index: u32,
    /// The text.
    pub refusal: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// More of a call's arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArgumentsDelta {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The call.
    pub item_id: String,
    /// The call's place in the output, from 0.
    pub output_index: u32,
    /// The piece of JSON.
    pub delta: String,
    /// Padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obfuscation: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// All of the arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArgumentsDone {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The call.
    pub item_id: String,
    /// The call's place in the output, from 0.
    pub output_index: u32,
    /// The function; not everybody tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The arguments.
    pub arguments: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A part of the thoughts in short as it is: blank at its beginning, whole at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryPartEvent {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The item.
    pub item_id: String,
    /// The item's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the item, from 0.
    pub summary_index: u32,
    /// The part.
    pub part: ReasoningPart,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// More of the thoughts in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryTextDelta {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The item.
    pub item_id: String,
    /// The item's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the item, from 0.
    pub summary_index: u32,
    /// The text.
    pub delta: String,
    /// Padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obfuscation: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// All of a part of the thoughts in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryTextDone {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The item.
    pub item_id: String,
    /// The item's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the item, from 0.
    pub summary_index: u32,
    /// The text.
    pub text: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// More of the thoughts themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasoningTextDelta {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The item.
    pub item_id: String,
    /// The item's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the item, from 0.
    pub content_index: u32,
    /// The text.
    pub delta: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// All of the thoughts themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasoningTextDone {
    /// The event's place in the stream, from 0.
    pub sequence_number: u64,
    /// The item.
    pub item_id: String,
    /// The item's place in the output, from 0.
    pub output_index: u32,
    /// The part's place in the item, from 0.
    pub content_index: u32,
    /// The text.
    pub text: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A failure told without a response: in its own fields, in `error`, or in both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorEvent {
    /// The event's place in the stream, from 0; not everybody tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// The machine-readable name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// For a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The field at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// All of it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ResponseError>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl ErrorEvent {
    /// The failure, wherever it is told.
    #[must_use]
    pub fn failure(&self) -> ResponseError {
        self.error.clone().unwrap_or_else(|| ResponseError {
            code: self.code.clone().unwrap_or_default(),
            message: self.message.clone().unwrap_or_default(),
            kind: String::new(),
            param: self.param.clone(),
        })
    }
}
