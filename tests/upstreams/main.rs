//! The running binary in front of model servers, which the simulator plays in the process of the
//! tests.
//!
//! `reply` parses responses, `folded` has the reply that a stream amounts to, `access` reads the
//! log. `matrix` tests every pair of protocols, `pictures` long replies and edits that change their
//! format, `asked` the fields of requests, `errors` the tables of errors, `patterns` keys for some
//! models, `any_name` models for all names, `affinity` conversations that stay at their target,
//! `asking` the output of `check --ask`, `counts` changes the tokens of replies, `usage` and `timing` metrics and log, `incidents` the words
//! of the log, `kept` answers that clients refer to, `allowed` what models allow, `stateful`
//! responses that upstreams keep, `hosted_tools` what tools of upstreams add to answers, `settings` what operators set for an upstream, `presets` the
//! settings of vendors, `quotas` the limits of keys and models. In `faults` and `gathered` upstreams misbehave, and `fault_test` checks each
//! of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

#[path = "../black_box/rows.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod rows;
#[path = "../black_box/stream.rs"]
#[allow(dead_code, reason = "black_box uses the rest")]
mod stream;

mod access;
mod counts;
mod fault_test;
mod folded;
mod redact;
mod reply;

mod affinity;
mod allowed;
mod any_name;
mod asked;
mod asking;
mod errors;
mod faults;
mod gathered;
mod hosted_tools;
mod incidents;
mod kept;
mod matrix;
mod patterns;
mod pictures;
mod presets;
mod quotas;
mod reload;
mod settings;
mod stateful;
mod thoughts;
mod timing;
mod usage;

const GATEWAY: testkit::Binary = testkit::binary!();
