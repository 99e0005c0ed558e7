//! The running binary in front of model servers: the simulator plays them, in the process of the tests.
//!
//! `house` is a gateway with its upstreams, `question` and `form` are requests of clients, `told` reads what they get,
//! `folded` the reply that a stream amounts to, `access` the log. `matrix` holds every protocol against every other,
//! `pictures` is about long replies and about edits in the other form, `errors` about the tables of errors, `patterns`
//! about keys for some models, `usage` and `timing` about metrics and log. In `faults` and `gathered` upstreams misbehave,
//! `scene` looks at each of them, and `law` is what must hold all the same.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

#[path = "../black_box/client.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod client;
#[path = "../black_box/rows.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod rows;
#[path = "../black_box/server.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod server;
#[path = "../black_box/stream.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod stream;

mod access;
mod folded;
mod form;
#[allow(dead_code, reason = "faults uses the rest")]
mod house;
mod law;
mod question;
mod redact;
mod scene;
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
