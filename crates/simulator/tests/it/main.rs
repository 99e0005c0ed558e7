//! The simulator from outside: over TCP, by a client that sees every byte.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod binary;
mod client;
mod connections;
mod folds;
mod honest;
mod pictures;
mod plays;
mod samples;
mod scenarios;
