//! `cargo xtask test`: every test that runs for a change, on a bare machine.

use crate::outcome::Outcome;
use crate::times::Times;
use crate::{clients, fetch_model, seed, shared, suite};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only the Rust tests whose path contains one of these names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Runs all tests, or the Rust tests of these names.
pub(crate) fn run(args: &Args) -> Outcome {
    let mut times = Times::of("test");
    let outcome = match args.names.is_empty() {
        true => everything(&mut times),
        false => {
            fetch_model::run().and_then(|()| suite::run(&mut times, &args.names, seed::current()?))
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
