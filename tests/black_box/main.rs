//! The running binary seen from outside: over sockets, with the real embedded model.
//!
//! Each file tests one promised property.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod addresses;
mod admin;
#[cfg(feature = "sqlite")]
mod admin_api;
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

const GATEWAY: testkit::Binary = testkit::binary!();
