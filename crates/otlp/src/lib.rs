#![doc = include_str!("../README.md")]

// The messages of OTLP.
pub mod messages;

// The names of attributes.
pub mod names;

// The model servers of attempts.
mod servers;

// The spans of a report.
pub mod spans;

// The task that sends spans.
pub mod exporter;
