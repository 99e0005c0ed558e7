//! `cargo xtask schemathesis`: tests the running gateway against its own OpenAPI document, as
//! `tests/schemathesis/run.py` does.

use crate::outcome::Outcome;
use crate::{clients, process, python, seed, suite};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of random requests for each operation
    #[arg(long, value_name = "N", default_value_t = 25)]
    examples: u32,
    /// Leave out the operations of this tag, such as Images
    #[arg(long, value_name = "TAG")]
    without: Vec<String>,
}

/// Runs the examples of a command line.
pub(crate) fn run(args: &Args) -> Outcome {
    examples(args.examples, seed::current()?, &args.without)
}

/// Runs so many examples of each operation, but of the operations with these tags.
pub(crate) fn examples(count: u32, seed: u64, without: &[String]) -> Outcome {
    suite::ready()?;
    let mut command = python::script("schemathesis")?;
    command.args(["--examples", &count.to_string()]);
    command.args(["--seed", &seed.to_string()]);
    command.args(without.iter().flat_map(|tag| ["--without", tag]));
    process::run(clients::with_programs(&mut command)?)
}
