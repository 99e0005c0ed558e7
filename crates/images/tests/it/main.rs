//! The protocol held against its fixtures, its rules, and the laws that hold for any input.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod fixtures;
mod laws;
mod rules;
