//! `cargo xtask interop`: tests the gateway in front of a third-party model server.
//!
//! llama-cpp-python serves the weights of the embedded engine over Chat Completions, with code that
//! shares nothing with ours. The tests in `tests/interop` run a gateway without engines in front of
//! it and send their requests through that.

use std::ffi::OsString;
use std::process::Command;

use crate::outcome::Outcome;
use crate::{fetch_model, process, python, workspace};

/// Installs the model and the server if they are absent, and runs the tests; `args` are passed to
/// the test program.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    println!("installing llama-cpp-python: at first a C++ compiler needs minutes to compile it");
    let folder = workspace::root().join("tests/interop");
    let python = python::environment("interop", &folder.join("requirements.txt"))?;
    let mut tests = Command::new(python);
    tests.arg(folder.join("serve.py"));
    tests.arg(workspace::target()?.join("interop.log"));
    tests.arg(fetch_model::weights()?);
    tests.arg(workspace::cargo_path()).args(TESTS.split(' '));
    workspace::without_own_package(&mut tests);
    process::run(tests.args(args).current_dir(workspace::root()))
}

/// The arguments of cargo that run the tests. The server handles one request at a time.
const TESTS: &str = "test --locked --package sluicegate-server --no-default-features --features interop \
                     --test interop -- --ignored --test-threads=1";
