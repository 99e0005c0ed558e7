#![doc = include_str!("../README.md")]

mod addresses;
mod encode;
mod event;
pub mod lenient;
mod request;
mod response;
mod status;
mod stream;
mod validate;

pub use encode::{Echo, Encoder, Finish, Head};
pub use event::{
    AnnotationAdded, ArgumentsDelta, ArgumentsDone, ErrorEvent, Event, ItemEvent, PartEvent,
    ReasoningTextDelta, ReasoningTextDone, RefusalDelta, RefusalDone, ResponseEvent,
    SummaryPartEvent, SummaryTextDelta, SummaryTextDone, TextDelta, TextDone,
};
pub use request::{
    AllowedTools, AudioPart, CustomToolCall, CustomToolCallOutput, Effort, FilePart, Format,
    FunctionCall, FunctionCallOutput, FunctionChoice, FunctionTool, ImagePart, Item, ItemReference,
    JsonSchemaFormat, Message, Part, Phase, PlainFormat, Reasoning, ReasoningOptions,
    ReasoningPart, RefusalPart, Request, Role, StreamOptions, Summary, TextOptions, TextPart, Tool,
    ToolChoice, ToolChoiceObject, ToolMode, Truncation, Verbosity,
};
pub use response::{
    IncompleteDetails, IncompleteReason, InputTokenCount, InputTokensDetails, OutputItem,
    OutputMessage, OutputPart, OutputText, OutputTokensDetails, Response, ResponseError, Usage,
};
pub use status::Status;
pub use stream::{Fold, Grammar, Offence, StreamError};
pub use validate::{Rules, ValidRequest};
