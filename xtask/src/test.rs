//! `cargo xtask test`: runs every test of the short tier, on a bare machine.

use std::ffi::OsString;

use crate::outcome::Outcome;
use crate::times::Times;
use crate::{clients, fetch_model, seed, shared, suite};

/// Runs all tests, or with `args` the Rust tests whose path contains one of them.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let filters: Vec<_> = args
        .iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    if let Some(flag) = filters.iter().find(|filter| filter.starts_with('-')) {
        return Err(format!(
            "unexpected {flag:?}: expected parts of names of Rust tests, or nothing"
        ));
    }
    let mut times = Times::of("test");
    let outcome = match filters.is_empty() {
        true => everything(&mut times),
        false => {
            fetch_model::run().and_then(|()| suite::run(&mut times, &filters, seed::current()?))
        }
    };
    times.finish();
    outcome
}

/// Runs the Rust tests, the examples in the documentation, the tests with real servers and the
/// current Python SDKs.
pub(crate) fn everything(times: &mut Times) -> Outcome {
    times.step("model", fetch_model::run)?;
    suite::run(times, &[], seed::current()?)?;
    shared::everything(times)?;
    times.step("Python SDKs", clients::python_current)
}
