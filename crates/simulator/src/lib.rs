#![doc = include_str!("../README.md")]

mod clock;
mod connection;
pub mod dialect;
mod form;
pub mod honest;
mod inbound;
mod log;
mod play;
mod reply;
mod request;
pub mod scenario;
mod server;
mod websocket;

pub use connection::{Detached, Socket};
pub use play::{Cut, Framing, Play, Step};
pub use request::{Protocol, Request};
pub use server::Simulator;
