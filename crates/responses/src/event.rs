//! The events of a stream: named server-sent events. See
//! <https://platform.openai.com/docs/api-reference/responses-streaming>.

use sse::EventName;
use wire::{EventError, Json};

use crate::request::ReasoningPart;
use crate::response::{OutputItem, OutputPart, Response, ResponseError};

wire::tagged! {
    /// One event of a stream. Events of unrecognized types are `Other`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event("type") {
        /// The response was created; the first event of a stream.
        Created(ResponseEvent) = "response.created",
        /// The model started to generate.
        InProgress(ResponseEvent) = "response.in_progress",
        /// Terminal event: the response is complete.
        Completed(ResponseEvent) = "response.completed",
        /// Terminal event: the output was truncated or filtered.
        Incomplete(ResponseEvent) = "response.incomplete",
        /// Terminal event: the response failed.
        Failed(ResponseEvent) = "response.failed",
        /// An output item was added, still empty.
        OutputItemAdded(ItemEvent) = "response.output_item.added",
        /// An output item is complete.
        OutputItemDone(ItemEvent) = "response.output_item.done",
        /// A part of a message was added, still empty.
        ContentPartAdded(PartEvent) = "response.content_part.added",
        /// A part of a message is complete.
        ContentPartDone(PartEvent) = "response.content_part.done",
        /// Output text to append.
        OutputTextDelta(TextDelta) = "response.output_text.delta",
        /// The complete text of a part.
        OutputTextDone(TextDone) = "response.output_text.done",
        /// An annotation of the text, such as a citation.
        OutputTextAnnotationAdded(AnnotationAdded) = "response.output_text.annotation.added",
        /// Refusal text to append.
        RefusalDelta(RefusalDelta) = "response.refusal.delta",
        /// The complete text of a refusal.
        RefusalDone(RefusalDone) = "response.refusal.done",
        /// A fragment of a call's arguments.
        ArgumentsDelta(ArgumentsDelta) = "response.function_call_arguments.delta",
        /// The complete arguments of a call.
        ArgumentsDone(ArgumentsDone) = "response.function_call_arguments.done",
        /// A part of a reasoning summary was added, still empty.
        SummaryPartAdded(SummaryPartEvent) = "response.reasoning_summary_part.added",
        /// A part of a reasoning summary is complete.
        SummaryPartDone(SummaryPartEvent) = "response.reasoning_summary_part.done",
        /// Reasoning summary text to append.
        SummaryTextDelta(SummaryTextDelta) = "response.reasoning_summary_text.delta",
        /// The complete text of a summary part.
        SummaryTextDone(SummaryTextDone) = "response.reasoning_summary_text.done",
        /// Reasoning text to append. Accepted from upstreams, but not part of this crate's stream
        /// grammar.
        ReasoningTextDelta(ReasoningTextDelta) = "response.reasoning_text.delta",
        /// The complete text of a reasoning part. Not part of the stream grammar either.
        ReasoningTextDone(ReasoningTextDone) = "response.reasoning_text.done",
        /// Terminal event: a failure without a response object.
        Error(ErrorEvent) = "error",
    }
}

impl Event {
    /// Parses the data of a server-sent event. The type is taken from the data; the event name is
    /// ignored.
    ///
    /// # Errors
    /// Returns an error if `data` is not a JSON object with a `type`, or does not match the schema
    /// of its type.
    pub fn read(data: &str) -> Result<Self, EventError> {
        wire::read_event("Responses", data)
    }

    /// Returns the data of the server-sent event: one line of JSON.
    #[must_use]
    pub fn data(&self) -> String {
        // Serializing these types cannot fail: their keys are strings and their numbers are finite.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Appends the event in its wire format.
    pub fn write(&self, out: &mut Vec<u8>) {
        // An unrecognized type may not be a valid event name. It is then omitted here; the data
        // still has it.
        sse::encode(EventName::new(self.kind()).ok(), &self.data(), out);
    }

    /// Returns true if this is a terminal event: nothing may follow it in the stream.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Completed(_) | Self::Incomplete(_) | Self::Failed(_) | Self::Error(_)
        )
    }

    /// Returns true for events that [`Grammar`](crate::Grammar) does not define: events of an
    /// unrecognized type, and the text of reasoning, which only some servers stream.
    #[must_use]
    pub const fn is_undefined(&self) -> bool {
        matches!(
            self,
            Self::Other(_) | Self::ReasoningTextDelta(_) | Self::ReasoningTextDone(_)
        )
    }

    /// Returns the sequence number, if the event has one.
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

    /// Returns the id and the output index of the item that the event belongs to.
    pub(crate) fn place(&self) -> Option<(&str, u32)> {
        Some(match self {
            Self::ContentPartAdded(event) | Self::ContentPartDone(event) => {
                (&event.item_id, event.output_index)
            }
            Self::OutputTextDelta(event) => (&event.item_id, event.output_index),
            Self::OutputTextDone(event) => (&event.item_id, event.output_index),
            Self::OutputTextAnnotationAdded(event) => (&event.item_id, event.output_index),
            Self::RefusalDelta(event) => (&event.item_id, event.output_index),
            Self::RefusalDone(event) => (&event.item_id, event.output_index),
            Self::ArgumentsDelta(event) => (&event.item_id, event.output_index),
            Self::ArgumentsDone(event) => (&event.item_id, event.output_index),
            Self::SummaryPartAdded(event) | Self::SummaryPartDone(event) => {
                (&event.item_id, event.output_index)
            }
            Self::SummaryTextDelta(event) => (&event.item_id, event.output_index),
            Self::SummaryTextDone(event) => (&event.item_id, event.output_index),
            _ => return None,
        })
    }
}

/// Declares events of an open item: structs that begin with the position of the event and its item.
macro_rules! item_events {
    ($($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* })+) => {
        wire::open_structs! {
            $(
                $(#[$meta])*
                pub struct $name {
                    /// Position of the event in the stream, counted from 0.
                    pub sequence_number: u64,
                    /// The id of the item.
                    pub item_id: String,
                    /// Index of the item in `output`, from 0.
                    pub output_index: u32,
                    $($fields)*
                }
            )+
        }
    };
}

wire::open_structs! {
    /// A snapshot of the response: empty at the start of the stream, complete at its end.
    pub struct ResponseEvent {
        /// Position of the event in the stream, counted from 0.
        pub sequence_number: u64,
        /// The response object.
        pub response: Box<Response>,
    }

    /// A snapshot of an item: empty when added, complete when done.
    pub struct ItemEvent {
        /// Position of the event in the stream, counted from 0.
        pub sequence_number: u64,
        /// Index of the item in `output`, from 0.
        pub output_index: u32,
        /// The item.
        pub item: OutputItem,
    }
}

item_events! {
    /// A snapshot of a message part: empty when added, complete when done.
    pub struct PartEvent {
        /// Index of the part in the message's `content`, from 0.
        pub content_index: u32,
        /// The part.
        pub part: OutputPart,
    }

    /// Output text to append.
    pub struct TextDelta {
        /// Index of the part in the message's `content`, from 0.
        pub content_index: u32,
        /// The text to append.
        pub delta: String,
        /// Log probabilities of the output tokens, if requested.
        #[serde(default, deserialize_with = "wire::or_default")]
        pub logprobs: Vec<Json>,
        /// Padding that hides the exact size of the delta.
        pub obfuscation: Option<String>,
    }

    /// The complete text of a part.
    pub struct TextDone {
        /// Index of the part in the message's `content`, from 0.
        pub content_index: u32,
        /// The complete text.
        pub text: String,
        /// Log probabilities of the output tokens, if requested.
        #[serde(default, deserialize_with = "wire::or_default")]
        pub logprobs: Vec<Json>,
    }

    /// An annotation of the text, such as a citation.
    pub struct AnnotationAdded {
        /// Index of the part in the message's `content`, from 0.
        pub content_index: u32,
        /// Index of the annotation in the part, from 0.
        pub annotation_index: u32,
        /// The annotation.
        pub annotation: Json,
    }

    /// Refusal text to append.
    pub struct RefusalDelta {
        /// Index of the part in the message's `content`, from 0.
        pub content_index: u32,
        /// The text to append.
        pub delta: String,
        /// Padding that hides the exact size of the delta.
        pub obfuscation: Option<String>,
    }

    /// The complete text of a refusal.
    pub struct RefusalDone {
        /// Index of the part in the message's `content`, from 0.
        pub content_index: u32,
        /// The complete text.
        pub refusal: String,
    }

    /// A fragment of a call's arguments.
    pub struct ArgumentsDelta {
        /// The JSON fragment to append.
        pub delta: String,
        /// Padding that hides the exact size of the delta.
        pub obfuscation: Option<String>,
    }

    /// The complete arguments of a call.
    pub struct ArgumentsDone {
        /// The name of the function; some servers omit it.
        pub name: Option<String>,
        /// The complete arguments, as JSON text.
        pub arguments: String,
    }

    /// A snapshot of a summary part: empty when added, complete when done.
    pub struct SummaryPartEvent {
        /// Index of the part in the item's `summary`, from 0.
        pub summary_index: u32,
        /// The part.
        pub part: ReasoningPart,
    }

    /// Reasoning summary text to append.
    pub struct SummaryTextDelta {
        /// Index of the part in the item's `summary`, from 0.
        pub summary_index: u32,
        /// The text to append.
        pub delta: String,
        /// Padding that hides the exact size of the delta.
        pub obfuscation: Option<String>,
    }

    /// The complete text of a part of a reasoning summary.
    pub struct SummaryTextDone {
        /// Index of the part in the item's `summary`, from 0.
        pub summary_index: u32,
        /// The complete text.
        pub text: String,
    }

    /// Reasoning text to append.
    pub struct ReasoningTextDelta {
        /// Index of the part in the item's `content`, from 0.
        pub content_index: u32,
        /// The text to append.
        pub delta: String,
    }

    /// The complete text of a reasoning part.
    pub struct ReasoningTextDone {
        /// Index of the part in the item's `content`, from 0.
        pub content_index: u32,
        /// The complete text.
        pub text: String,
    }
}

wire::open_structs! {
    /// A failure without a response object, described by its own fields, by `error`, or by both.
    #[derive(Default)]
    pub struct ErrorEvent {
        /// Position of the event in the stream, counted from 0; some servers omit it.
        pub sequence_number: Option<u64>,
        /// Machine-readable error code.
        pub code: Option<String>,
        /// Human-readable description.
        pub message: Option<String>,
        /// The request field that caused the error, as a path.
        pub param: Option<String>,
        /// The error as an object, with the same information.
        pub error: Option<ResponseError>,
    }
}

impl ErrorEvent {
    /// Returns the error object, built from the event's own fields if `error` is absent.
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
