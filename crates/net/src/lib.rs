#![doc = include_str!("../README.md")]

mod dial;
mod lazy_timer;
mod pem;
mod resolve;
mod server_tls;
mod tls;
mod with_peer;

pub use dial::{Connection, Dial, MAX_ADDRESSES, Tcp, connect, dial_any};
pub use futures_util::future::BoxFuture;
pub use lazy_timer::LazyTimer;
pub use pem::roots;
pub use resolve::{RESOLVE_TIMEOUT, Resolve, SystemResolver};
pub use server_tls::{ServerFileError, ServerFiles, ServerTls};
pub use tls::{
    client_config, client_config_with_certificate, client_config_without_verification, public_roots,
};
pub use with_peer::WithPeer;
