//! Accepts connections and serves them over HTTP/1.

// The number of open files, which bounds the number of connections.
pub(crate) mod fd_limit;

// Wakes a connection once for many events.
mod coalescing_waker;

// The timer that hyper uses for the head of a request.
mod head_timer;

// Closes sockets whose clients do not send or read in time.
mod timeout_io;

// Accepts connections as long as there are places.
mod accept;

// Serves connections, and shuts down.
pub(crate) mod serve;
