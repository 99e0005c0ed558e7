#![doc = include_str!("../README.md")]

// The time.
pub mod clock;

// The phases of a shutdown.
pub mod lifecycle;

// The revocation of a key while its requests run.
pub mod revocation;

// A bound that several keys share.
pub mod shared_bound;

// When a key of an upstream, or the list of its models, is read again.
pub mod refresh_schedule;

// The facts of models in the list of an upstream.
pub mod model_list;

// The order in which targets are tried.
mod target_order;

// The conversation of a request, and the target that it stays with.
pub mod affinity;

// The targets of models.
pub mod targets;

// Prices of models and targets.
pub mod prices;

// API keys that a gateway generates, and keys of the environment.
pub mod keys;

// Keys of the configuration and of a store, together.
pub mod policy_keys;

// The lease client: the client of the store from which quotas are leased.
pub mod lease_store;

// Limits of concurrent requests, and quotas.
pub mod limit;

// The part of a configuration that can be reloaded.
mod policy;

// Requests that are sent to a second target while the first one is slow.
pub mod hedge;

// The stores of keys and usage.
pub mod accounting;

pub use crate::policy::{AtStart, Policies, Policy};
