//! The running binary with a store of keys and usage, in front of model servers that the simulator
//! plays. The file of the store is read with plain SQL, never with the code that has written it.
//!
//! `usage` tests the row of a request, `ends` that of one without an end in order, `prices` its cost,
//! `budgets` what is refused for it, `kills` that a process that is killed loses no row, and `away` what
//! happens while the store cannot be written. `revocation` tests several gateways with one file, and
//! `gateways` several with one database of PostgreSQL.

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
