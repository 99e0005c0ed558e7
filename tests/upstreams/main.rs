//! The running binary in front of model servers: the simulator plays them, in the process of the tests.
//!
//! `house` is a gateway with its upstreams, `question` what clients ask, `told` what they get, `folded` the reply
//! that a stream amounts to. `matrix` holds every protocol against every other, `pictures` is about long replies and about
//! edits in the other form, `errors` about the tables of errors; in `faults` upstreams misbehave, `scene` looks at each of
//! them, and `law` is what must hold all the same.

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

mod folded;
#[allow(dead_code, reason = "faults uses the rest")]
mod house;
mod law;
mod question;
mod redact;
mod scene;
mod told;

mod errors;
mod faults;
mod matrix;
mod pictures;
mod reload;
mod thoughts;
