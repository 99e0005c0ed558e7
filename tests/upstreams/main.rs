//! The running binary in front of model servers, which the simulator plays in the process of the
//! tests.
//!
//! `folded` folds a stream into its reply, without types of the gateway. `matrix` tests every pair
//! of protocols, `admission` requests that refer to kept answers, `pictures` long replies and edits
//! that change their format, `asked` the fields of
//! requests, `members` those that choose another model, `errors` the tables of errors, `patterns`
//! keys for some models, `explained` the explanations of requests, `any_name` models for all names, `first_content` slow targets, `affinity` conversations that stay at
//! their target, `asking` the output of `check --ask`, `counting` token counts, `usage` and `timing` metrics and log,
//! `incidents` the messages of the log, `model_lists` the facts in lists of upstreams, `kept` responses that clients refer to, `allowed` the
//! allowed fields of models, `stateful` responses that upstreams keep, `hosted_tools` the output of
//! hosted tools, `stop_sequences` answers that the gateway ends, `traces` the spans of requests, `settings` the settings of an upstream, `presets` the settings of vendors,
//! `vendor_rules` the rules of vendors, `strict_vendors` servers that refuse what the real ones do, `quotas`
//! the limits of keys and models. In `faults` and `gathered` upstreams misbehave;
//! `testkit::upstreams` checks the outcome of each request.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod folded;
mod redact;

mod admission;
mod affinity;
mod allowed;
mod any_name;
mod asked;
mod asking;
mod counting;
mod errors;
mod explained;
mod faults;
mod first_content;
mod gathered;
mod hedge;
mod hosted_tools;
mod incidents;
mod kept;
mod matrix;
mod members;
mod model_lists;
mod patterns;
mod pictures;
mod presets;
mod quotas;
mod reload;
mod settings;
mod stateful;
mod stop_sequences;
mod strict_vendors;
mod thoughts;
mod timing;
mod traces;
mod usage;
mod vendor_rules;

const GATEWAY: testkit::Binary = testkit::binary!();
