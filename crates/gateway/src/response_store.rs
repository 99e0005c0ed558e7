//! Responses that later requests of the same key can refer to.

// The bounded store in memory.
pub(crate) mod store;

// The upstreams that keep responses themselves.
pub(crate) mod origins;

// The input of a stored response.
pub(crate) mod stored_input;
