//! The running binary with a store of keys and usage, in front of model servers that the simulator
//! plays. The file of the store is read with plain SQL, never with the code that has written it.
//!
//! `usage` tests the row of a request, `ends` the row of a request without an orderly end, `prices`
//! the cost of a request, `budgets` refusals for its cost, `kills` that a killed process loses no
//! row, and `away` requests while the store cannot be written. `revocation` tests several gateways
//! with one file, and `gateways` several with one database of PostgreSQL.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod away;
mod budgets;
mod database;
mod ends;
#[cfg(feature = "postgres")]
mod gateways;
mod kills;
#[cfg(feature = "postgres")]
mod postgres;
mod prices;
mod revocation;
mod store;
mod usage;

const GATEWAY: testkit::Binary = testkit::binary!();
