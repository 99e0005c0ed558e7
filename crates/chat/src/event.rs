//! The events of a stream: data-only server-sent events (spec §6.2, wire-reference §2.4).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{ErrorBody, Json, Object};

use crate::{FinishReason, Usage};

wire::objects!(FunctionDelta);

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A piece of the completion.
    Chunk(Chunk),
    /// The failure that ends a stream.
    Error(ErrorBody),
    /// `[DONE]`: the success that ends a stream.
    Done,
}

impl Event {
    /// Reads the data of a server-sent event.
    ///
    /// # Errors
    /// When it is neither `[DONE]` nor a JSON object of a chunk or an error.
    pub fn read(data: &str) -> Result<Self, EventError> {
        if data.trim() == DONE {
            return Ok(Self::Done);
        }
        let error = match serde_json::from_str(data) {
            Ok(chunk) => return Ok(Self::Chunk(chunk)),
            Err(error) => error,
        };
        match serde_json::from_str(data) {
            Ok(body) => Ok(Self::Error(body)),
            Err(_) => Err(EventError(wire::json_fault(&error))),
        }
    }

    /// The data of the server-sent event: one line of JSON, or `[DONE]`.
    #[must_use]
    pub fn data(&self) -> String {
        let json = match self {
            Self::Chunk(chunk) => serde_json::to_string(chunk),
            Self::Error(body) => serde_json::to_string(body),
            Self::Done => return DONE.to_owned(),
        };
        // These types always have a JSON form: their keys are strings and their numbers finite.
        json.unwrap_or_default()
    }

    /// Appends the event as it goes over the wire.
    pub fn write(&self, out: &mut Vec<u8>) {
        sse::encode(None, &self.data(), out);
    }

    /// Whether a stream ends with this event.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Error(_) | Self::Done)
    }
}

/// A server-sent event that is none of this protocol; the text says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventError(String);

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no chat completion event: {}", self.0)
    }
}

impl std::error::Error for EventError {}

/// A piece of a completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chunk {
    /// `chatcmpl-…`, the same in every chunk.
    pub id: String,
    /// `chat.completion.chunk`.
    pub object: String,
    /// When the completion was begun, in Unix seconds; the same in every chunk.
    pub created: i64,
    /// The model that the caller asked for.
    pub model: String,
    /// What is new, for each answer that has something new; empty in the chunk of the usage.
    pub choices: Vec<ChunkChoice>,
    /// What it took: in the last chunk when asked for, null or absent before.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Usage>")]
    pub usage: Option<Option<Usage>>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

impl Chunk {
    /// The value of `object`.
    pub const OBJECT: &'static str = "chat.completion.chunk";
}

/// What is new of one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChunkChoice {
    /// The answer's place, from 0.
    pub index: u32,
    /// What is new.
    #[serde(default)]
    pub delta: Delta,
    /// How likely each token was, when that was asked for.
    pub logprobs: Option<Json>,
    /// Why the answer ended; null until it does.
    pub finish_reason: Option<FinishReason>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// What is new: pieces of text to append, and pieces of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// `assistant`, in the first chunk alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// More of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// More of the thoughts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// More of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// More of the calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCallDelta>>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A piece of a call: id, type and name come once, with the first piece.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallDelta {
    /// The call's place, from 0.
    pub index: u32,
    /// The id by which the result refers to the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The function and more of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionDelta>,
    /// Every other field, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// The function and more of its arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct FunctionDelta {
    /// The function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

/// Tells `null` from absent.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<Usage>>, D::Error> {
    Option::deserialize(from).map(Some)
}

const DONE: &str = "[DONE]";
