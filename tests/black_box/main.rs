//! The running binary seen from outside: over sockets, with the real embedded model.
//!
//! `chain` starts one gateway, or two in a row, for the tests of replies. Each other file tests one
//! promised property.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod chain;

mod addresses;
mod admin;
#[cfg(feature = "sqlite")]
mod admin_api;
mod auth;
mod chat;
mod check;
mod commands;
mod cors;
mod edits;
mod images;
mod limits;
mod messages;
mod models;
mod passing;
mod refusals;
mod reload;
mod responses;
mod shutdown;
mod start;
mod understanding;
mod uploads;

const GATEWAY: testkit::Binary = testkit::binary!();
