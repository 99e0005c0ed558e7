#![doc = include_str!("../README.md")]

mod in_words;
pub mod inbound;
pub mod outbound;
pub mod quirks;
pub mod rules;
