#![doc = include_str!("../README.md")]

// Loads the embedded engines that this build has.
mod engines;

// The limit of file descriptors.
mod fd_limit;

// Starts a gateway from a configuration.
mod start;

// A gateway without a process of its own.
mod embedded;

// The command line.
mod commands;

pub use config::ConfigError;

pub use crate::commands::main;
pub use crate::embedded::EmbeddedGateway;
