#![doc = include_str!("../README.md")]

mod colour;
mod drawing;
mod edit;
mod encode;
mod engine;
mod fit;
mod inputs;
mod job;
mod mask;
mod prompt;
mod render;
mod scene;
mod usage;

pub use crate::engine::{EmbeddedImageEngine, Options};
