#![doc = include_str!("../README.md")]

mod decoder;
mod encoder;
mod error;
mod line;

pub use decoder::{Decoder, Event, Limits};
pub use encoder::{EventName, NameError, comment, encode};
pub use error::{DecodeError, Truncated};
