//! Faults between a client and the running binary: each test is named after its row of the fault list.
//!
//! The rows about upstreams are in `tests/upstreams`, with the harness that both share: `house` is a gateway with its
//! upstreams, `scene` asserts what must hold under any fault. `roads` lists all ways of a request through the
//! gateway; `sizes`, `permits` and `shares` check each limit on each of them, `gate` keeps requests waiting.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

#[path = "../testkit/client.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod client;
#[path = "../testkit/form.rs"]
mod form;
#[path = "../testkit/harness.rs"]
#[allow(dead_code, reason = "upstreams uses the rest")]
mod house;
#[path = "../testkit/privacy.rs"]
mod law;
#[path = "../testkit/question.rs"]
#[allow(dead_code, reason = "upstreams uses the rest")]
mod question;
#[path = "../upstreams/fault_test.rs"]
#[allow(dead_code, reason = "upstreams uses the rest")]
mod scene;
#[path = "../testkit/gateway.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod server;
#[path = "../black_box/stream.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod stream;
#[path = "../upstreams/reply.rs"]
#[allow(dead_code, reason = "upstreams uses the rest")]
mod told;

mod auth;
mod bounds;
mod forms;
mod framing;
mod gate;
mod json;
mod leaving;
mod log;
mod overload;
mod permits;
mod pictures;
mod private;
mod process;
mod raw;
mod reload;
mod roads;
mod shares;
mod sizes;
mod slow;
