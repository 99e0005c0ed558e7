//! The Responses API over WebSocket, in front of model servers that the simulator plays.
//!
//! `opening` has the handshake, `turns` the responses and what they continue, `streams` several
//! conversations on a connection, `ending` its limits and the ways in which it ends, `conformance` the
//! frames of RFC 6455, `leaving` clients that drop their connections, `upstream` the WebSockets to model
//! servers.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod conformance;
mod ending;
mod frames;
mod leaving;
mod opening;
mod streams;
mod turns;
mod upstream;

const GATEWAY: testkit::Binary = testkit::binary!();
