#![doc = include_str!("../README.md")]

mod request;
mod validate;

pub use request::{Background, Edit, Generation, Mask, OutputFormat, Quality, Reference, ResponseFormat};
pub use validate::{ValidEdit, ValidGeneration};
