#![doc = include_str!("../README.md")]

mod brief;
mod colour;
mod edit;
mod encode;
mod engine;
mod fit;
mod inputs;
mod preview;
mod render;
mod scene;
mod studio;
mod usage;

pub use crate::engine::{EmbeddedImageEngine, Options};
