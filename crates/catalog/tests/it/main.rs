//! Integration tests of the catalog and its model lists.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod facts;
mod list;
mod models;
mod upstream_list;
