#![doc = include_str!("../README.md")]

pub mod envelope;
mod error;
pub mod inbound;
pub mod ledger;
pub mod outbound;
pub mod relay;

pub use error::{api_error, in_stream};
