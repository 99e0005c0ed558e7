#![doc = include_str!("../README.md")]

#[cfg(test)]
#[path = "../benches/decode/candle.rs"]
mod candle;
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
