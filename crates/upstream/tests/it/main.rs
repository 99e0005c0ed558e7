//! The client against model servers that are scripted byte by byte: in memory where time is paused, over TCP where
//! the network itself has a part in it.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod world;

mod bodies;
mod connecting;
mod heads;
mod pictures;
mod requests;
mod retries;
mod reuse;
