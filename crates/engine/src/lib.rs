#![doc = include_str!("../README.md")]

mod error;
mod event;
mod image;
mod request;

use std::pin::Pin;

use futures_core::Stream;
use futures_core::future::BoxFuture;

pub use error::{EngineError, Rejection};
pub use event::{Stop, TextEvent, Usage};
pub use image::{
    Background, ImageEdit, ImageEvent, ImageFormat, ImageRequest, ImageTraits, ImageUsage, Pixels, Quality, Size,
};
pub use request::{
    AssistantPart, Effort, Format, ImageSource, Reasoning, Sampling, TextRequest, Tool, ToolCall, ToolChoice,
    ToolResult, Turn, UserPart, Verbosity,
};

/// Something that answers text requests.
///
/// Dropping what it returned is how a caller cancels: the engine stops within one token.
pub trait TextEngine: Send + Sync {
    /// Accepts or refuses a request, and hands out its generation.
    ///
    /// It resolves as soon as the request is known to be one that can be answered; waiting for a free place
    /// is part of the generation, not of this call.
    fn start(&self, request: TextRequest) -> BoxFuture<'_, Result<Generation, EngineError>>;

    /// How many tokens the request's prompt has, as this engine would count them for its usage.
    fn count_tokens(&self, request: TextRequest) -> BoxFuture<'_, Result<u64, EngineError>>;
}

/// A request that was accepted.
pub struct Generation {
    /// What of the request the engine leaves aside, as short names for the caller; usually nothing.
    pub dropped: Vec<String>,
    /// What the model does, pulled one event at a time.
    ///
    /// It ends after [`TextEvent::Finished`] or after the first error. A stream that ends otherwise has failed.
    pub events: TextStream,
}

/// The events of one generation.
pub type TextStream = Pin<Box<dyn Stream<Item = Result<TextEvent, EngineError>> + Send>>;

/// Something that makes pictures.
///
/// Dropping what it returned is how a caller cancels: the engine stops before the next picture.
pub trait ImageEngine: Send + Sync {
    /// Accepts or refuses a request, and hands out the making of its pictures.
    ///
    /// It resolves when the request is known to be one that can be answered: its pictures to start from are decoded,
    /// its size is settled.
    fn start(&self, request: ImageRequest) -> BoxFuture<'_, Result<ImageGeneration, EngineError>>;

    /// The most pictures that one request may start from. More need not be fetched.
    fn most_references(&self) -> usize;
}

/// A request for pictures that was accepted.
pub struct ImageGeneration {
    /// What all its pictures have in common.
    pub traits: ImageTraits,
    /// What the engine does, pulled one event at a time.
    ///
    /// It ends after the last picture or after the first error. A stream that ends otherwise has failed.
    pub events: ImageStream,
}

/// The events of the making of pictures.
pub type ImageStream = Pin<Box<dyn Stream<Item = Result<ImageEvent, EngineError>> + Send>>;
