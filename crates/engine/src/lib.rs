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
    Background, ImageEdit, ImageEvent, ImageFormat, ImageRequest, ImageTraits, ImageUsage, Pixels,
    Quality, Size,
};
pub use request::{
    AssistantPart, CacheLifetime, CachedPrefixes, Effort, Format, ImageSource, Labels, Reasoning,
    Sampling, TextRequest, Tool, ToolCall, ToolChoice, ToolResult, Turn, UserPart, Verbosity,
};

/// An engine that generates text.
///
/// Callers cancel by dropping the returned future or stream; the engine then stops within one
/// token.
pub trait TextEngine: Send + Sync {
    /// Validates a request and starts its generation.
    ///
    /// The future resolves as soon as the request is known to be valid; waiting for a free slot is
    /// part of the generation, not of this call.
    fn start(&self, request: TextRequest) -> BoxFuture<'_, Result<Generation, EngineError>>;

    /// Returns the number of tokens of the request's prompt, as this engine would count them for
    /// usage.
    fn count_tokens(&self, request: TextRequest) -> BoxFuture<'_, Result<u64, EngineError>>;
}

/// The generation of an accepted text request.
pub struct Generation {
    /// Short names of request fields that the engine ignores, to be reported to the client; usually
    /// empty.
    pub dropped: Vec<String>,
    /// The events of the generation, produced on demand.
    ///
    /// The stream ends after [`TextEvent::Finished`] or after the first error. Any other end is a
    /// failure.
    pub events: TextStream,
}

/// A stream of the events of one text generation.
pub type TextStream = Pin<Box<dyn Stream<Item = Result<TextEvent, EngineError>> + Send>>;

/// An engine that generates images.
///
/// Callers cancel by dropping the returned future or stream; the engine then stops before the next
/// image.
pub trait ImageEngine: Send + Sync {
    /// Validates a request and starts its generation.
    ///
    /// The future resolves once the request is known to be valid: its reference images are decoded
    /// and its size is determined.
    fn start(&self, request: ImageRequest) -> BoxFuture<'_, Result<ImageGeneration, EngineError>>;

    /// Returns the maximum number of reference images per request, so that more need not be
    /// fetched.
    fn most_references(&self) -> usize;
}

/// The generation of an accepted image request.
pub struct ImageGeneration {
    /// Properties shared by all its images.
    pub traits: ImageTraits,
    /// The events of the generation, produced on demand.
    ///
    /// The stream ends after the last image or after the first error. Any other end is a failure.
    pub events: ImageStream,
}

/// A stream of the events of one image generation.
pub type ImageStream = Pin<Box<dyn Stream<Item = Result<ImageEvent, EngineError>> + Send>>;
