//! The fetcher against names, connections and https hosts that are made up.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod world;

mod answers;
mod limits;
mod redirects;
mod vectors;
