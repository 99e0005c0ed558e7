//! `cargo xtask dialects`: runs the gateway in front of servers that bend their protocol.

use crate::outcome::Outcome;
use crate::{process, workspace};

/// Requests every case of `tests/dialects`, and prints the differences and the table; `write` writes
/// the tables to `docs/dialects.md`.
pub(crate) fn run(write: bool) -> Outcome {
    let mut test = workspace::cargo(
        "test --locked --package sluicegate-server --no-default-features --test dialects \
         -- --nocapture",
    );
    if write {
        test.env("SLUICEGATE_DIALECTS_WRITE", "1");
    }
    process::echoed(&mut test)
}
