#![doc = include_str!("../README.md")]

pub mod breaker;

mod budget;
mod client;
mod connect;
mod credential;
mod event_memory;
mod exchange;
mod failure;
mod headers;
mod health;
mod host;
mod host_attempt;
mod http1;
mod idle_timeout;
mod incoming;
mod options;
mod options_error;
mod origin;
mod outgoing;
mod pool;
mod proxy;
mod proxy_exception;
mod request_headers;
mod response_head;
mod response_meta;
mod retry_after;
mod sockets;
mod source;
mod websocket;

pub use client::{Effort, Upstream};
pub use connect::Network;
pub use credential::Credential;
pub use event_memory::EventMemory;
pub use health::{Circuit, HostHealth};
pub use incoming::{Incoming, IncomingBody};
pub use net::{BoxFuture, Connection, Dial, Resolve, WithPeer};
pub use options::Options;
pub use options_error::OptionsError;
pub use outgoing::{Outgoing, Payload};
pub use proxy::Proxy;
pub use response_meta::ResponseMeta;
pub use sockets::{ClientSockets, Previous};
