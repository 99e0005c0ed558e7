//! `cargo xtask schemathesis`: tests the running gateway against its own OpenAPI document, as
//! `tests/schemathesis/run.py` does.

use std::process::Command;

use crate::outcome::Outcome;
use crate::{clients, process, python, seed, suite, workspace};

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

/// Runs ten examples of each operation.
pub(crate) fn smoke() -> Outcome {
    examples(10, seed::current()?, &[])
}

/// Runs 100 examples of each operation with a new seed.
pub(crate) fn nightly() -> Outcome {
    examples(100, seed::fresh(), &[])
}

/// Runs the examples of a command line.
pub(crate) fn run(args: &Args) -> Outcome {
    examples(args.examples, seed::current()?, &args.without)
}

fn examples(count: u32, seed: u64, without: &[String]) -> Outcome {
    suite::ready()?;
    let folder = workspace::root().join("tests/schemathesis");
    let python = python::environment("schemathesis", &folder.join("requirements.txt"))?;
    let mut command = Command::new(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(folder.join("run.py")).arg(workspace::target()?);
    command.args(["--examples", &count.to_string()]);
    command.args(["--seed", &seed.to_string()]);
    command.args(without.iter().flat_map(|tag| ["--without", tag]));
    process::run(clients::with_programs(&mut command)?)
}
