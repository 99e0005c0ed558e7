#![doc = include_str!("../README.md")]

// Durations and sizes.
mod units;

// Messages without keys and passwords.
mod mask;

// The errors of the TOML parser.
mod parser_error;

// The problems of a configuration.
mod error;

// A command that prints the key of an upstream.
mod key_command;

// `[[keys]]`.
pub mod key;

// `[limits]`.
mod limits;

// `[[quotas]]`.
pub mod quota;

// The folder of the journal beside a store in PostgreSQL.
#[cfg(feature = "postgres")]
mod journal_folder;

// `[state]`.
pub mod state;

// `[fetch]`.
mod fetch;

// `[responses]`.
mod responses;

// `[websocket]`.
mod websocket;

// `[tls]` and `[admin_tls]`.
mod tls;

// `[cors]`.
mod cors;

// `[[upstreams]]`, and the presets for vendors.
pub mod upstream;

// The collector of traces or metrics.
pub mod collector;

// `[traces]`.
pub mod traces;

// `[metrics]`.
pub mod metrics;

// `[[models]]`.
mod model_entry;

// The whole file.
mod file;

// The addresses of the listeners.
mod listeners;

// `sluicegate config schema`.
pub mod schema;

// `sluicegate config init`.
pub mod annotated;

// The settings that a running gateway cannot change.
pub mod fixed;

// The configuration of `sluicegate serve --upstream`.
pub mod pass_through;

// `sluicegate presets`.
pub mod presets;

// `sluicegate prices import`.
pub mod price_import;

pub use crate::cors::Cors;
pub use crate::error::ConfigError;
pub use crate::fetch::Fetch;
pub use crate::file::{Config, DEFAULT_ADMIN, ImageEngineConfig, TextEngineConfig};
pub use crate::limits::Limits;
pub use crate::model_entry::ModelEntry;
pub use crate::responses::Responses;
pub use crate::tls::Tls;
pub use crate::units::bytes;
pub use crate::websocket::WebSocket;
