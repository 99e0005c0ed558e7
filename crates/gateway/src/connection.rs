//! The state of a client connection, and its timers.

// The deadlines of a connection, in one timer.
pub(crate) mod timer;

// What the parts of a connection tell each other.
pub mod state;
