//! The answers of engines.

pub(crate) mod engine_events;
