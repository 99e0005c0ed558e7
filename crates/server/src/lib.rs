//! The gateway: configuration, listeners, routing, limits, bodies, metrics, log, stop.
//!
//! The binary `sluicegate` is [`main`]; [`Inside`] is a gateway without a process of its own.

mod accept;
mod admin;
mod ask;
mod attempt;
mod body;
mod check;
mod cli;
mod clock;
mod config;
mod descriptors;
mod endpoints;
mod gateway;
mod head;
mod inside;
mod keys;
mod lifecycle;
mod limit;
mod line;
mod log;
#[cfg(test)]
mod memory;
mod metrics;
mod openapi;
mod outcome;
mod policy;
mod record;
mod references;
mod refusal;
mod route;
mod routes;
mod serve;
mod stall;
mod start;
#[cfg(test)]
mod test_gateway;

pub use crate::cli::main;
pub use crate::config::ConfigError;
pub use crate::inside::Inside;
