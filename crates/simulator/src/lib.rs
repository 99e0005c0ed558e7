#![doc = include_str!("../README.md")]

mod clock;
mod connection;
mod form;
pub mod honest;
mod inbound;
mod log;
mod play;
mod request;
pub mod scenario;
mod server;
mod shared;

pub use connection::Socket;
pub use play::{Cut, Framing, Play, Step};
pub use request::{Protocol, Request};
pub use server::{Detached, Simulator};
