//! The events of a stream: named server-sent events (wire-reference §3.4).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sse::EventName;
use wire::Object;

use crate::{Block, ErrorDetail, Message, StopReason};

wire::tagged! {
    /// One event of a stream.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event("type") {
        /// The message begins.
        MessageStart(MessageStart) = "message_start",
        /// A block begins.
        BlockStart(BlockStart) = "content_block_start",
        /// More of the open block.
        BlockDelta(BlockDelta) = "content_block_delta",
        /// The open block ends.
        BlockStop(BlockStop) = "content_block_stop",
        /// Why the message ends, and what it took.
        MessageDelta(MessageDelta) = "message_delta",
        /// The success that ends a stream.
        MessageStop(Plain) = "message_stop",
        /// Nothing: it keeps a silent stream open.
        Ping(Plain) = "ping",
        /// The failure that ends a stream.
        Error(StreamFailure) = "error",
    }
}

impl Event {
    /// Reads the data of a server-sent event.
    ///
    /// # Errors
    /// When it is no JSON object with a type, or one that does not fit its type.
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
        matches!(self, Self::Error(_) | Self::MessageStop(_))
    }
}

/// A server-sent event that is none of this protocol; the text says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventError(String);

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no messages event: {}", self.0)
    }
}

impl std::error::Error for EventError {}

/// The message begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageStart {
    /// The message, still without content and stop reason.
    pub message: Message,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A block begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockStart {
    /// The block's place in the message, from 0.
    pub index: u32,
    /// The block, still empty.
    pub content_block: Block,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// More of the open block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDelta {
    /// The block's place in the message.
    pub index: u32,
    /// What is new.
    pub delta: Delta,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

wire::tagged! {
    /// What is new of a block.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Delta("type") {
        /// More text.
        Text(TextDelta) = "text_delta",
        /// More of a call's input.
        InputJson(InputJsonDelta) = "input_json_delta",
        /// More thoughts.
        Thinking(ThinkingDelta) = "thinking_delta",
        /// The seal on the thoughts.
        Signature(SignatureDelta) = "signature_delta",
    }
}

/// More text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextDelta {
    /// The text to append.
    pub text: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// More of a call's input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputJsonDelta {
    /// A piece of the input's JSON text.
    pub partial_json: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// More thoughts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingDelta {
    /// The text to append.
    pub thinking: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// The seal on the thoughts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignatureDelta {
    /// The whole seal; empty when there is none.
    pub signature: String,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// The open block ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockStop {
    /// The block's place in the message.
    pub index: u32,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Why the message ends, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageDelta {
    /// What is new of the message.
    pub delta: StopDelta,
    /// What it took, from its beginning.
    #[serde(default)]
    pub usage: UsageDelta,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What is new of a message at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopDelta {
    /// Why it ends.
    pub stop_reason: Option<StopReason>,
    /// The stop text that came up, when that is why.
    pub stop_sequence: Option<String>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// Tokens used, from the beginning of the message. A count that is absent is the one told at the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageDelta {
    /// Tokens of the prompt, without those written to or read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of the prompt that were written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Tokens of the prompt that were read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_input_tokens: Option<u64>,
    /// Tokens of the answer, thoughts included.
    #[serde(default)]
    pub output_tokens: u64,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// An event of which there is no more to say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plain {
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// The failure that ends a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamFailure {
    /// The failure.
    pub error: ErrorDetail,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}
