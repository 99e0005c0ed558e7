//! `cargo xtask test`: every test, from a bare machine.

use std::ffi::OsString;

use crate::{Outcome, clients, fetch_model, passed, process};

/// Brings the model if it is absent and runs the tests; `args` go to the last `cargo test`.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    fetch_model::run()?;
    // The build that `cargo test` makes too, and beside it the binary that the clients call.
    let roots = passed::build()?;
    clients::python_sdks()?;
    let mut tests = process::cargo("test");
    tests.args(["--workspace", "--locked"]).args(args);
    passed::run(tests, &roots)
}
