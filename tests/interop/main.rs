//! The running binary, without engines, in front of llama-cpp-python: a model server that shares no
//! code with ours.
//!
//! `cargo xtask interop` starts the server and runs these tests. Each test sends requests by every
//! [`road::Road`], plain and streamed. The tests check the meaning and the format of a reply, not
//! how a small model words it. Features that the server lacks, and its behaviour instead, are
//! documented at the tests.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand")]

mod answers;
mod calls;
mod failures;
mod road;

const GATEWAY: testkit::Binary = testkit::binary!();
