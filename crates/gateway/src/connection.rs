//! The state of a client connection, and its timers.

// The deadlines of a connection, in one timer.
pub(crate) mod timer;

// The state that the requests of a connection share.
pub mod state;
