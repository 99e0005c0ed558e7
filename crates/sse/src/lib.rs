#![doc = include_str!("../README.md")]

mod decoder;
mod encoder;
mod error;
mod event;
mod line;
mod lines;

pub use decoder::{Decoder, Limits};
pub use encoder::{EventName, NameError, comment, encode};
pub use error::{DecodeError, Truncated};
pub use event::Event;
