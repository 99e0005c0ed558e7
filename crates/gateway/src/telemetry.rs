//! The log and the metrics.

// One line of JSON for each event and each request.
pub mod log;

// Counters and gauges in the Prometheus text format.
pub mod metrics;
