#![doc = include_str!("../README.md")]

mod addresses;
mod arguments;
mod encode;
mod error;
mod event;
mod input;
pub mod lenient;
mod request;
mod response;
mod stream;
mod validate;

pub use encode::{Encoder, Head};
pub use error::{ErrorBody, ErrorDetail, ErrorDetails, error_type, refusal, status};
pub use event::{
    BlockDelta, BlockStart, BlockStop, Delta, Event, InputJsonDelta, MessageDelta, MessageStart,
    Plain, SignatureDelta, StopDelta, StreamFailure, TextDelta, ThinkingDelta, UsageDelta,
};
pub use request::{
    AnyTool, ContentSource, CustomTool, DataSource, DocumentBlock, Effort, ImageBlock, InputBlock,
    InputMessage, JsonSchemaFormat, Metadata, NamedTool, OutputConfig, OutputFormat, Request, Role,
    Source, Thinking, ThinkingBudget, ThinkingDisplay, ThinkingMode, Tool, ToolChoice,
    ToolResultBlock, UrlSource,
};
pub use response::{
    Block, Message, RedactedThinkingBlock, StopReason, TextBlock, ThinkingBlock, TokenCount,
    ToolUseBlock, Usage,
};
pub use stream::{Fold, Grammar, Offence, StreamError};
pub use validate::{Rules, ValidCount, ValidRequest};
