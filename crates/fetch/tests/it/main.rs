//! Tests the fetcher against scripted DNS, connections and https hosts.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod world;

mod answers;
mod limits;
mod redirects;
mod vectors;
