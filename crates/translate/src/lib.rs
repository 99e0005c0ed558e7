#![doc = include_str!("../README.md")]

mod call_id;
pub mod envelope;
mod error;
pub mod field_map;
pub mod inbound;
pub mod outbound;
pub mod quirks;
pub mod relay;
pub mod rules;

pub use error::{api_error, in_stream};
