//! The traces of requests: the ids by which a request is found in the traces of its client and of its
//! upstreams, and the finished requests that wait to be exported.

// The ids of a request in its trace.
pub mod context;

// The requests that are exported.
pub mod sampling;

// The queue of an exporter.
pub mod queue;
