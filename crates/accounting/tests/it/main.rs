//! Tests of the store and of the journal from outside.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod append;
mod flaky;
mod journal;
mod keys;
mod killed;
#[cfg(feature = "postgres")]
mod postgres;
mod rollups;
mod schedules;
mod schema;
mod support;
