#![doc = include_str!("../README.md")]

mod colour;
mod drawing;
mod edit;
mod encode;
mod engine;
mod fit;
mod inputs;
mod preview;
mod prompt;
mod render;
mod scene;
mod studio;
mod usage;

pub use crate::engine::{EmbeddedImageEngine, Options};
