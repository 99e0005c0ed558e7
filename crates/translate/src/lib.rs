#![doc = include_str!("../README.md")]

pub mod count;
mod in_words;
pub mod inbound;
pub mod outbound;
pub mod quirks;
pub mod rules;
