//! Tests the client against model servers that are scripted byte by byte: in memory with a paused
//! clock, or over TCP where the behaviour of the network matters.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod bodies;
mod connecting;
mod heads;
mod requests;
mod retries;
mod reuse;
mod websocket;
