//! The gateway: listeners, routing, bodies, metrics, log, shutdown.
//!
//! The binary `sluicegate` is [`main`]; [`EmbeddedGateway`] is a gateway without a process of its
//! own.

mod accept;
mod admin;
mod admin_access;
mod admin_api;
mod admin_client;
mod answer;
mod ask;
mod attempt;
mod background;
mod body;
mod check;
mod cli;
mod coalescing_waker;
mod connection_state;
mod connection_timer;
mod embedded;
mod endpoints;
mod engines;
mod fd_limit;
mod gateway;
mod head;
mod head_timer;
mod image_urls;
mod keeping;
mod kept;
mod key_refresh;
mod log;
mod long_work;
#[cfg(test)]
mod memory;
mod metrics;
mod openapi;
mod origins;
mod outcome;
mod outgoing;
mod quota_headers;
mod record;
mod refusal;
mod reply;
mod resolved;
mod routing;
mod serve;
mod shared_bound;
mod start;
mod state;
mod stored_input;
#[cfg(test)]
mod test_gateway;
mod timeout_io;
mod tracking;

pub use config::ConfigError;

pub use crate::cli::main;
pub use crate::embedded::EmbeddedGateway;
