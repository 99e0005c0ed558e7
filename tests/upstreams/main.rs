//! The running binary in front of model servers, which the simulator plays in the process of the tests.
//!
//! `house` is a gateway with its upstreams, `question` and `form` are requests of clients, `told` parses their
//! responses, `folded` has the reply that a stream amounts to, `access` reads the log. `matrix` tests every pair of
//! protocols, `pictures` long replies and edits that change their format, `errors` the tables of errors, `patterns`
//! keys for some models, `usage` and `timing` metrics and log. In `faults` and `gathered` upstreams misbehave,
//! `scene` checks each of them, and `law` has the assertions that hold under every fault.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

#[path = "../testkit/client.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod client;
#[path = "../black_box/rows.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod rows;
#[path = "../testkit/gateway.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod server;
#[path = "../black_box/stream.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod stream;

mod access;
mod folded;
#[path = "../testkit/form.rs"]
mod form;
#[path = "../testkit/harness.rs"]
#[allow(dead_code, reason = "faults uses the rest")]
mod house;
#[path = "../testkit/privacy.rs"]
mod law;
#[path = "../testkit/question.rs"]
mod question;
mod redact;
#[path = "fault_test.rs"]
mod scene;
#[path = "reply.rs"]
mod told;

mod errors;
mod faults;
mod gathered;
mod matrix;
mod patterns;
mod pictures;
mod reload;
mod thoughts;
mod timing;
mod usage;
