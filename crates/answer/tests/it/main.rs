//! Tests of answers from servers in memory.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod errors;
mod pictures;
mod streams;
