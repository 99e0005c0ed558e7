//! The running binary seen from outside: over sockets, with the real embedded model.
//!
//! `server` starts and stops it, `client` is a raw HTTP client, `stream` validates every stream by the grammar of its
//! protocol. Each other file tests one promised property.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

#[path = "../testkit/client.rs"]
#[allow(dead_code, reason = "tests/faults uses the rest")]
mod client;
#[allow(dead_code, reason = "tests/upstreams uses the rest")]
mod rows;
#[path = "../testkit/gateway.rs"]
#[allow(dead_code, reason = "tests/faults uses the rest")]
mod server;
mod stream;

mod addresses;
mod admin;
mod auth;
mod chat;
mod check;
mod edits;
mod images;
mod limits;
mod messages;
mod models;
mod refusals;
mod reload;
mod responses;
mod shutdown;
mod start;
mod understanding;
mod uploads;
