//! `cargo xtask test`: every test that runs for a change, on a bare machine.

use crate::outcome::Outcome;
use crate::times::Times;
use crate::{clients, fetch_model, seed, shared, suite};

/// The command line.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Run only the Rust tests whose path contains one of these names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Runs the Rust tests, the examples in the documentation, the tests with real servers, the current
/// Python SDKs and the console; or the Rust tests of some names.
pub(crate) fn run(Args { names }: &Args) -> Outcome {
    let times = &mut Times::of("test");
    times.step("model", fetch_model::run)?;
    suite::run(times, names, seed::current()?)?;
    if !names.is_empty() {
        return Ok(());
    }
    let with_servers = shared::beside()?;
    times.step("Python SDKs", clients::python_current)?;
    times.step("console", clients::console)?;
    times.step("tests with real servers", || {
        with_servers.output().map(|output| print!("{output}"))
    })
}
