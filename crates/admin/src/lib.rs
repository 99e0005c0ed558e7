#![doc = include_str!("../README.md")]

// The schemas of the types in the OpenAPI documents.
mod schemas;

// The hosts and the key of the admin address.
pub mod access;

// The admin API: keys, usage, limits and prices.
pub mod api;

// The OpenAPI documents.
pub mod openapi;

// The admin address: probes, metrics, and the admin API.
pub mod admin;

pub use crate::admin::Admin;
