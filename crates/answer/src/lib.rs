#![doc = include_str!("../README.md")]

// Recognizes the content of a body by its first bytes.
mod opening;

// The usage and the images that an upstream has reported so far.
mod reported;

// The state of an attempt at a target.
mod asked;

// A response as a JSON document or an event stream.
mod answer;

// Neutral events, for clients of another protocol.
mod translated_stream;

// The events of a stream, for clients of the upstream's protocol.
mod relayed_stream;

// Complete replies with images.
mod image_reply;

pub use crate::answer::Answer;
pub use crate::asked::Asked;
pub use crate::image_reply::{ImageReply, StreamingReply};
pub use crate::relayed_stream::Relay;
pub use crate::reported::{Report, Reported};
pub use crate::translated_stream::{from_events, read_reply, read_stream, until_stop};
