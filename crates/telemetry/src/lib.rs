#![doc = include_str!("../README.md")]

// The outcome of a request.
pub mod outcome;

// The reason why a client connection ended.
pub mod close_reason;

// The ids of requests in traces.
pub mod traces;

// One line of JSON for each event and each request.
pub mod log;

// Counters and gauges in the Prometheus text format.
pub mod metrics;

// The requests in flight, and the most recent finished ones.
pub mod requests;
