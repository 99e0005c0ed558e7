#![doc = include_str!("../README.md")]

// Wakes a connection once for many events.
mod coalescing_waker;

// The timer that hyper uses for the head of a request.
mod head_timer;

// Finds floods of HTTP/2 frames.
mod frame_meter;

// Closes sockets whose clients do not send or read in time.
mod timeout_io;

// Serves a connection over HTTP/2.
mod http2;

// Serves a connection.
mod connection;

// TLS handshakes.
mod tls;

// Accepts connections as long as there are places.
mod accept;

// Serves all listeners, and shuts down.
mod serve;

pub use crate::connection::serve_connection;
pub use crate::serve::{AdminListener, Listeners, Stop, serve};
pub use crate::tls::TlsListener;
