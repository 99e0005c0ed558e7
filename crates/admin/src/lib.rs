#![doc = include_str!("../README.md")]

// The schemas of the types in the OpenAPI documents.
mod schemas;

// The sessions of the console.
pub mod sessions;

// The hosts, the key and the sessions by which the admin address admits requests.
pub mod access;

// The admin API: keys, usage, limits and prices.
pub mod api;

// The console: its files, its sessions, and its requests to the public API.
pub mod console;

// The OpenAPI documents.
pub mod openapi;

// The admin address: probes, metrics, and the admin API.
pub mod admin;

pub use crate::admin::Admin;
