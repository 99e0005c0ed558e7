//! Faults between a client and the running binary: each test is named after its row of the fault
//! list.
//!
//! The rows about upstreams are in `tests/upstreams`; `testkit::upstreams` asserts the rules
//! for every fault. `roads` lists all ways of a request through the gateway; `sizes`, `permits` and
//! `shares` check each limit on each of them, `gate` keeps requests waiting.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod auth;
mod bounds;
mod certificates;
mod compressed;
mod curl;
mod forms;
mod framing;
mod gate;
mod http2;
mod http2_requests;
mod json;
mod leaving;
mod log;
mod overload;
mod permits;
mod pictures;
mod private;
mod process;
mod reload;
mod roads;
mod shares;
mod sizes;
mod slow;
mod tls;

const GATEWAY: testkit::Binary = testkit::binary!();
