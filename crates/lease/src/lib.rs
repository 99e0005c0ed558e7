#![doc = include_str!("../README.md")]

mod address;
mod clock;
mod local;
mod model;
mod report;
mod script;
mod store;
mod valkey;

pub use address::{Address, AddressError};
pub use clock::{Proof, StoreClock, boottime};
pub use local::Local;
pub use model::{Answer, Call, Model};
pub use report::{Report, Unsuitable};
pub use store::{Exchange, LeaseStore, Unreachable};
pub use valkey::{Settings, Valkey};
