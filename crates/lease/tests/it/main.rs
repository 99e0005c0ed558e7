//! Tests of the lease stores.

mod ledger;
mod random;
mod simulation;
mod world;
