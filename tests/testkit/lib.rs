//! Helpers that the test programs share: an HTTP client, the process of the gateway, requests in
//! each protocol, and a reader of replies and streams.
//!
//! Nothing here parses with the crates of the gateway, so that a bug in one of them cannot hide
//! itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic on failure")]

mod client;
mod config;
pub mod dialects;
pub mod dice;
pub mod errors;
pub mod events;
pub mod examples;
mod form;
mod gateway;
pub mod http2;
pub mod log;
mod parallel;
mod privacy;
pub mod reading;
mod refusal;
pub mod requests;
pub mod rows;
pub mod strict;
pub mod upstreams;
pub mod usage;
pub mod websocket;

pub use self::client::{Connection, End, GUARD, Received, Request, Response, changed, exchange};
pub use self::config::{Config, UPSTREAM_MODEL};
pub use self::form::Form;
pub use self::gateway::{
    Binary, Gateway, IMAGES, MESSAGES, NOWHERE, Scratch, TEXT, await_that, by_shell,
};
pub use self::parallel::in_parallel;
pub use self::privacy::{
    CLIENT_KEY, UPSTREAM_KEY, assert_private, check_request_headers, check_response_headers,
};
pub use self::refusal::{Refusal, check_refusal, check_relayed_refusal, has_word, refusals};
