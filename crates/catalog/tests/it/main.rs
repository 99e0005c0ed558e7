//! What the catalog offers, refuses and lists.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod list;
mod models;
