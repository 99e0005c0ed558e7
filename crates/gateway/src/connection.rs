//! The state of a client connection, its timers, and the bodies of its requests.

// The deadlines of a connection, in one timer.
pub(crate) mod timer;

// The state that the requests of a connection share.
pub mod state;

// The body of a request as the client sends it.
pub mod client_body;
