//! The events of a stream: server-sent events without names. See
//! <https://platform.openai.com/docs/api-reference/chat-streaming>.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{ErrorBody, EventError, Json, Object};

use crate::{FinishReason, Usage};

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A chunk of the completion.
    Chunk(Chunk),
    /// Terminal event: the request failed.
    Error(ErrorBody),
    /// Terminal event `[DONE]`: the completion is complete.
    Done,
}

impl Event {
    /// Parses the data of a server-sent event.
    ///
    /// # Errors
    /// Returns an error if `data` is neither `[DONE]` nor a JSON object of a chunk or an error.
    pub fn read(data: &str) -> Result<Self, EventError> {
        if data.trim() == DONE {
            return Ok(Self::Done);
        }
        let chunk = wire::read_event("Chat Completions", data).map(Self::Chunk);
        chunk.or_else(|error| {
            serde_json::from_str(data)
                .map(Self::Error)
                .map_err(|_| error)
        })
    }

    /// Returns the data of the server-sent event: one line of JSON, or `[DONE]`.
    #[must_use]
    pub fn data(&self) -> String {
        let json = match self {
            Self::Chunk(chunk) => serde_json::to_string(chunk),
            Self::Error(body) => serde_json::to_string(body),
            Self::Done => return DONE.to_owned(),
        };
        // Serializing these types cannot fail: their keys are strings and their numbers are finite.
        json.unwrap_or_default()
    }

    /// Appends the event in its wire format.
    pub fn write(&self, out: &mut Vec<u8>) {
        sse::encode(None, &self.data(), out);
    }

    /// Returns true if this is a terminal event: nothing may follow it in the stream.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Error(_) | Self::Done)
    }
}

wire::open_structs! {
    /// A chunk of a completion.
    pub struct Chunk {
        /// The id of the completion, `chatcmpl-…`; the same in every chunk.
        pub id: String,
        /// The object type, `chat.completion.chunk`.
        pub object: String,
        /// Creation time, in Unix seconds; the same in every chunk.
        pub created: i64,
        /// The id of the model, as requested.
        pub model: String,
        /// The deltas of the choices; empty in the usage chunk.
        pub choices: Vec<ChunkChoice>,
        /// Token usage: present in the last chunk if requested, null or absent before.
        #[serde(default, deserialize_with = "present")]
        #[schemars(with = "Option<Usage>")]
        pub usage: Option<Option<Usage>>,
    }
}

impl Chunk {
    /// The value of `object`.
    pub const OBJECT: &'static str = "chat.completion.chunk";
}

/// The delta of one choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ChunkChoice {
    /// Index of the choice, from 0.
    pub index: u32,
    /// The delta.
    #[serde(default)]
    pub delta: Delta,
    /// Log probabilities of the output tokens, if requested.
    pub logprobs: Option<Json>,
    /// The reason why the choice ended; null until then.
    pub finish_reason: Option<FinishReason>,
    /// Unrecognized fields, kept as received.
    #[serde(flatten)]
    pub extra: Object,
}

wire::open_structs! {
    /// A delta: text to append, and fragments of calls.
    #[derive(Default)]
    pub struct Delta {
        /// The role, `assistant`; only in the first chunk.
        pub role: Option<String>,
        /// Output text to append.
        pub content: Option<String>,
        /// Reasoning text to append.
        pub reasoning_content: Option<String>,
        /// Refusal text to append.
        pub refusal: Option<String>,
        /// Fragments of calls.
        pub tool_calls: Option<Vec<ToolCallDelta>>,
    }

    /// A fragment of a call. The id, type and name are only in the first one.
    pub struct ToolCallDelta {
        /// Index of the call, from 0.
        pub index: u32,
        /// The call id, by which the result refers to the call.
        pub id: Option<String>,
        /// The type, `function`.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        /// The name and a fragment of the arguments.
        pub function: Option<FunctionDelta>,
    }
}

wire::closed_structs! {
    /// The name and a fragment of the arguments.
    #[derive(Default)]
    pub struct FunctionDelta {
        /// The name of the function.
        pub name: Option<String>,
        /// A fragment of the arguments.
        pub arguments: Option<String>,
    }
}

impl ToolCallDelta {
    /// Returns a member of the fragment of a call of a custom tool.
    pub(crate) fn custom(&self, name: &str) -> Option<&str> {
        self.extra.get(CUSTOM)?.get(name)?.as_str()
    }
}

/// The type of the call of a custom tool, and the member that has its name and input.
pub(crate) const CUSTOM: &str = "custom";

/// Distinguishes null from absent.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<Usage>>, D::Error> {
    Option::deserialize(from).map(Some)
}

const DONE: &str = "[DONE]";
