//! Failures of model servers, and the errors that clients receive for them.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod client_errors;
mod failures;

/// The published errors, with their sources.
const PUBLISHED: &str = include_str!("fixtures/vendor-errors.json");
