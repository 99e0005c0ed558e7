//! Tests against real servers, whose programs `SLUICEGATE_VALKEY` and `SLUICEGATE_REDIS` name.

mod differential;
mod faults;
mod notices;
mod server;
mod topologies;
