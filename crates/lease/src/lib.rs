#![doc = include_str!("../README.md")]

#[cfg(not(feature = "valkey"))]
mod absent;
#[cfg(feature = "valkey")]
mod address;
mod clock;
mod in_process;
mod reference;
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
pub use clock::{ElapsedProof, StoreClock, boottime};
pub use in_process::InProcessStore;
pub use reference::{ExchangeRequest, ExchangeResponse, ReferenceStore};
pub use report::{Report, Unsuitable};
pub use store::{
    DataLossFuture, ExchangeFuture, LeaseStore, NoticeFuture, ShareInfo, SharesFuture, Unreachable,
};
#[cfg(feature = "valkey")]
pub use valkey::{Settings, Valkey};
