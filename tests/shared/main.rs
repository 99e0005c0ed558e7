//! Several gateways that share their quotas through one Valkey. The model server that they pass
//! requests to is the judge: it sees how many requests are really in progress.
//!
//! The tests need a server, whose path is in `SLUICEGATE_VALKEY`: `cargo xtask shared` brings it.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod black_hole;
mod fleet;
mod judge;
mod load;
mod store;

mod clock;
mod faults;
mod limits;
mod lost_lease;
mod lost_store;
mod monitoring;
mod partitions;
mod readme;
mod replicas;
mod topologies;

const GATEWAY: testkit::Binary = testkit::binary!();
