#![doc = include_str!("../README.md")]

mod dial;
mod lazy_timer;
mod resolve;
mod tls;
mod with_peer;

pub use dial::{Connection, Dial, MAX_ADDRESSES, Tcp, connect, dial_any};
pub use futures_util::future::BoxFuture;
pub use lazy_timer::LazyTimer;
pub use resolve::{RESOLVE_TIMEOUT, Resolve, SystemResolver};
pub use tls::{client_config, public_roots};
pub use with_peer::WithPeer;
