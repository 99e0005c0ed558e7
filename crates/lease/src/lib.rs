#![doc = include_str!("../README.md")]

#[cfg(not(feature = "valkey"))]
mod absent;
#[cfg(feature = "valkey")]
mod address;
mod clock;
mod local;
mod model;
mod report;
#[cfg(feature = "valkey")]
mod script;
mod store;
#[cfg(feature = "valkey")]
mod valkey;

#[cfg(not(feature = "valkey"))]
pub use absent::{Address, Valkey};
#[cfg(feature = "valkey")]
pub use address::{Address, AddressError};
pub use clock::{Proof, StoreClock, boottime};
pub use local::Local;
pub use model::{Answer, Call, Model};
pub use report::{Report, Unsuitable};
pub use store::{Exchange, Holder, Holders, LeaseStore, Notice, Unreachable};
#[cfg(feature = "valkey")]
pub use valkey::{Settings, Valkey};
