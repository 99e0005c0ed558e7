#![doc = include_str!("../README.md")]

pub mod address;
#[cfg(feature = "client")]
mod dial;
#[cfg(feature = "client")]
mod error;
#[cfg(feature = "client")]
mod exchange;
#[cfg(feature = "client")]
mod fetcher;
#[cfg(feature = "client")]
mod options;
pub mod target;

#[cfg(feature = "client")]
pub use error::FetchError;
#[cfg(feature = "client")]
pub use fetcher::{Fetcher, Picture};
#[cfg(feature = "client")]
pub use net::{BoxFuture, Connection, Dial, Resolve, WithPeer};
#[cfg(feature = "client")]
pub use options::{Mode, Options};
#[cfg(feature = "client")]
pub use tokio_rustls::rustls::RootCertStore;
