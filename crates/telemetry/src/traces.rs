//! The traces of requests: the ids by which a request is found in the traces of its client and of its
//! upstreams, and the results of exporting its spans.

// The ids of a request in its trace.
pub mod context;

// The data of other systems in a trace.
pub mod state;

// A request in its trace.
pub mod request;

// Whether a span was sent.
pub mod span_result;
