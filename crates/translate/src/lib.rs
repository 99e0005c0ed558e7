#![doc = include_str!("../README.md")]

pub mod inbound;
pub mod outbound;
pub mod quirks;
pub mod rules;
