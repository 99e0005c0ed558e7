//! The events of a stream: named server-sent events. See
//! <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sse::EventName;
use wire::{EventError, Object};

use crate::{Block, ErrorDetail, Message, StopReason};

wire::tagged! {
    /// One event of a stream.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event("type") {
        /// The message has started; the first event of a stream.
        MessageStart(MessageStart) = "message_start",
        /// A content block has started.
        BlockStart(BlockStart) = "content_block_start",
        /// A delta of the open block.
        BlockDelta(BlockDelta) = "content_block_delta",
        /// The open block is complete.
        BlockStop(BlockStop) = "content_block_stop",
        /// The stop reason and the token usage of the message.
        MessageDelta(MessageDelta) = "message_delta",
        /// Terminal event: the message is complete.
        MessageStop(Plain) = "message_stop",
        /// A keep-alive event without content.
        Ping(Plain) = "ping",
        /// Terminal event: the request failed.
        Error(StreamFailure) = "error",
    }
}

impl Event {
    /// Parses the data of a server-sent event.
    ///
    /// # Errors
    /// Returns an error if `data` is not a JSON object with a `type`, or does not match the schema
    /// of its type.
    pub fn read(data: &str) -> Result<Self, EventError> {
        wire::read_event("Messages", data)
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
        matches!(self, Self::Error(_) | Self::MessageStop(_))
    }
}

wire::open_structs! {
    /// The message has started; the first event of a stream.
    pub struct MessageStart {
        /// The message, still without content and stop reason.
        pub message: Message,
    }

    /// A content block has started.
    pub struct BlockStart {
        /// Index of the block in the message's `content`, from 0.
        pub index: u32,
        /// The block, still empty.
        pub content_block: Block,
    }

    /// A delta of the open block.
    pub struct BlockDelta {
        /// Index of the block in the message's `content`, from 0.
        pub index: u32,
        /// The delta.
        pub delta: Delta,
    }
}

wire::tagged! {
    /// A delta of a block.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Delta("type") {
        /// Output text to append.
        Text(TextDelta) = "text_delta",
        /// A fragment of a call's input.
        InputJson(InputJsonDelta) = "input_json_delta",
        /// Thinking text to append.
        Thinking(ThinkingDelta) = "thinking_delta",
        /// The signature of the thinking block.
        Signature(SignatureDelta) = "signature_delta",
    }
}

wire::open_structs! {
    /// Output text to append.
    pub struct TextDelta {
        /// The text to append.
        pub text: String,
    }

    /// A fragment of a call's input.
    pub struct InputJsonDelta {
        /// The fragment of JSON text to append.
        pub partial_json: String,
    }

    /// Thinking text to append.
    pub struct ThinkingDelta {
        /// The text to append.
        pub thinking: String,
    }

    /// The signature of the thinking block.
    pub struct SignatureDelta {
        /// The complete signature; empty without one.
        pub signature: String,
    }

    /// The open block is complete.
    pub struct BlockStop {
        /// Index of the block in the message's `content`, from 0.
        pub index: u32,
    }

    /// The stop reason and the token usage of the message.
    pub struct MessageDelta {
        /// The changed fields of the message.
        pub delta: StopDelta,
        /// Token usage of the message so far.
        #[serde(default)]
        pub usage: UsageDelta,
    }
}

/// The fields of a message that are known at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct StopDelta {
    /// The reason why the message ended.
    pub stop_reason: Option<StopReason>,
    /// The matched stop sequence, if that is the reason.
    pub stop_sequence: Option<String>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_structs! {
    /// Token usage since the start of the message. Absent counts are those reported in
    /// `message_start`.
    #[derive(Default, Eq)]
    pub struct UsageDelta {
        /// Tokens of the prompt, excluding those read from or written to a cache.
        pub input_tokens: Option<u64>,
        /// Tokens of the prompt that were written to a cache.
        pub cache_creation_input_tokens: Option<u64>,
        /// Tokens of the prompt that were read from a cache.
        pub cache_read_input_tokens: Option<u64>,
        /// Tokens of the output, including thinking tokens.
        #[serde(default)]
        pub output_tokens: u64,
    }

    /// An event without content.
    #[derive(Default)]
    pub struct Plain {}

    /// Terminal event: the request failed.
    pub struct StreamFailure {
        /// The error.
        pub error: ErrorDetail,
    }
}
