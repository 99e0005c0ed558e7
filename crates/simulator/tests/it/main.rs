//! Black-box tests of the simulator over TCP, with a client that sees every byte.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod binary;
mod connections;
mod dialects;
mod folds;
mod honest;
mod pictures;
mod plays;
mod samples;
mod scenarios;
