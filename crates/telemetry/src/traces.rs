//! The traces of requests: the ids by which a request is found in the traces of its client and of its
//! upstreams, and what becomes of its spans.

// The ids of a request in its trace.
pub mod context;

// What became of a span.
pub mod span_result;
