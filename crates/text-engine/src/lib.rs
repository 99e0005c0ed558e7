#![doc = include_str!("../README.md")]

mod constrain;
mod conversation;
mod engine;
mod generate;
mod gguf;
mod loaded_model;
mod matrix;
mod model;
mod picture;
mod pool;
mod prepare;
mod prompt;
#[cfg(test)]
mod reference;
mod sample;
mod session;
mod stop;
mod tokenizer;
mod tools;
mod vector;
pub mod weights;
mod writer;

pub use crate::engine::{EmbeddedTextEngine, Options};
pub use crate::weights::LoadError;
