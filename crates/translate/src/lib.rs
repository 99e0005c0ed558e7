#![doc = include_str!("../README.md")]

mod error;
pub mod inbound;

pub use error::api_error;
