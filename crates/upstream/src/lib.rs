#![doc = include_str!("../README.md")]

pub mod breaker;
pub mod budget;
pub mod retry_after;
pub mod targets;

#[cfg(feature = "client")]
mod answer;
#[cfg(feature = "client")]
mod bell;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "client")]
mod dial;
#[cfg(feature = "client")]
mod failure;
#[cfg(feature = "client")]
mod headers;
#[cfg(feature = "client")]
mod host;
#[cfg(feature = "client")]
mod incoming;
#[cfg(feature = "client")]
mod leave;
#[cfg(feature = "client")]
mod link;
#[cfg(feature = "client")]
mod listen;
#[cfg(feature = "client")]
mod members;
mod network;
#[cfg(feature = "client")]
mod options;
#[cfg(feature = "client")]
mod origin;
#[cfg(feature = "client")]
mod outgoing;
#[cfg(feature = "client")]
mod patience;
#[cfg(feature = "client")]
mod pictures;
#[cfg(feature = "client")]
mod pool;
#[cfg(feature = "client")]
pub mod relay;
#[cfg(feature = "client")]
mod resolve;

#[cfg(feature = "client")]
pub use answer::Answer;
#[cfg(feature = "client")]
pub use bell::Bell;
#[cfg(feature = "client")]
pub use client::Upstream;
#[cfg(feature = "client")]
pub use dial::{Connection, Dial};
#[cfg(feature = "client")]
pub use failure::{Failure, Stage};
#[cfg(feature = "client")]
pub use incoming::{Incoming, IncomingBody, MediaKind};
#[cfg(feature = "client")]
pub use listen::{listen, said};
#[cfg(feature = "client")]
pub use network::Network;
#[cfg(feature = "client")]
pub use options::{Credential, Options, OptionsError};
#[cfg(feature = "client")]
pub use outgoing::{Outgoing, Payload};
#[cfg(feature = "client")]
pub use pictures::{Passing, Pictures};
#[cfg(feature = "client")]
pub use resolve::{BoxFuture, Resolve};
