#![doc = include_str!("../README.md")]

pub mod breaker;
pub mod budget;
pub mod retry_after;
pub mod targets;

#[cfg(feature = "client")]
mod answer;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod coalescing_waker;
#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "client")]
mod dial;
#[cfg(feature = "client")]
mod event_stream;
#[cfg(feature = "client")]
mod failure;
#[cfg(feature = "client")]
mod headers;
#[cfg(feature = "client")]
mod host;
#[cfg(feature = "client")]
mod host_attempt;
#[cfg(feature = "client")]
mod http1;
#[cfg(feature = "client")]
mod idle_timeout;
#[cfg(feature = "client")]
mod image_reply;
#[cfg(feature = "client")]
mod incoming;
mod network;
#[cfg(feature = "client")]
mod options;
#[cfg(feature = "client")]
mod origin;
#[cfg(feature = "client")]
mod outgoing;
#[cfg(feature = "client")]
mod pool;
#[cfg(feature = "client")]
pub mod relay;
#[cfg(feature = "client")]
mod resolve;
#[cfg(feature = "client")]
mod top_level;

#[cfg(feature = "client")]
pub use answer::Answer;
#[cfg(feature = "client")]
pub use client::Upstream;
#[cfg(feature = "client")]
pub use coalescing_waker::CoalescingWaker;
#[cfg(feature = "client")]
pub use dial::{Connection, Dial};
#[cfg(feature = "client")]
pub use event_stream::{listen, said};
#[cfg(feature = "client")]
pub use failure::{Failure, Stage};
#[cfg(feature = "client")]
pub use image_reply::{ImageReply, StreamingReply};
#[cfg(feature = "client")]
pub use incoming::{Incoming, IncomingBody, MediaKind};
#[cfg(feature = "client")]
pub use network::Network;
#[cfg(feature = "client")]
pub use options::{Credential, Options, OptionsError};
#[cfg(feature = "client")]
pub use outgoing::{Outgoing, Payload};
#[cfg(feature = "client")]
pub use resolve::{BoxFuture, Resolve};
