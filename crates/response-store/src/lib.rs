#![doc = include_str!("../README.md")]

// The bounded store in memory.
pub mod store;

// The upstreams that keep responses themselves.
pub mod origins;

// The input of a stored response.
pub mod stored_input;
