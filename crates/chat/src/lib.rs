#![doc = include_str!("../README.md")]

mod addresses;
mod encode;
mod event;
pub mod lenient;
mod logprobs;
mod request;
mod response;
mod seen;
mod skim;
mod stream;
mod validate;

pub use encode::{Encoder, Head};
pub use event::{Chunk, ChunkChoice, Delta, Event, FunctionDelta, ToolCallDelta};
pub use request::{
    AllowedTools, AllowedToolsChoice, AssistantMessage, AudioPart, CustomChoice, CustomTool,
    CustomToolCall, Effort, FilePart, FileSource, FunctionCall, FunctionChoice, FunctionMessage,
    FunctionName, FunctionTool, FunctionToolCall, ImagePart, ImageUrl, JsonSchemaFormat, Message,
    NamedSchema, Part, PlainFormat, RefusalPart, Request, ResponseFormat, StreamOptions,
    SystemMessage, TextPart, Tool, ToolCall, ToolChoice, ToolChoiceObject, ToolFunction,
    ToolMessage, ToolMode, UserMessage,
};
pub use response::{Choice, ChoiceMessage, Completion, FinishReason, Usage};
pub use stream::{Fold, Grammar, Offence, StreamError};
pub use validate::{Rules, ValidRequest};
