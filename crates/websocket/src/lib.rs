#![doc = include_str!("../README.md")]

// The events of the gateway and of its clients.
mod event;

// The socket, with the bytes of messages that are not complete.
mod metered;

// The responses that a connection can continue.
mod conversations;

// One response.
mod turn;

// Requests that only prepare a response.
mod warm_up;

// The handshake.
pub mod handshake;

// One connection.
mod connection;

pub use connection::serve;
