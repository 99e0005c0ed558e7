//! Tests against real servers, by default of `SLUICEGATE_VALKEY` and `SLUICEGATE_REDIS`.

mod differential;
mod faults;
mod notices;
mod server;
mod topologies;
