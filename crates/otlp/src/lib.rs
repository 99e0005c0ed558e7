#![doc = include_str!("../README.md")]

// The messages of OTLP.
pub mod messages;

// The names of attributes.
pub mod names;

// The model servers of attempts.
mod servers;

// Fields of protobuf.
mod fields;

// The attributes of a span.
mod attributes;

// The spans of a report.
mod spans;

// The lines of `/metrics` as messages.
mod metrics;

// The client of a collector.
mod collector;

// The task that sends spans.
mod trace_exporter;

// The task that sends metrics.
mod metric_exporter;

// The tasks together.
pub mod exporters;
