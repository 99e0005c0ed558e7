#![doc = include_str!("../README.md")]

// The events of the gateway and of its clients.
mod event;

// The socket, with the bytes of messages that are not complete.
mod metered;

// The responses that a connection can continue.
mod conversations;

// The request of a client.
mod request;

// Requests that only prepare a response.
mod warm_up;

// One response.
mod turn;

// The handshake.
pub mod handshake;

// One connection.
mod connection;

pub use connection::serve;
