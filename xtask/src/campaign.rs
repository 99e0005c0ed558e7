//! `cargo xtask campaign`: runs seeded faults by the hundred thousand.

use std::ffi::OsString;
use std::process::Command;

use crate::outcome::Outcome;
use crate::{process, seed, suite, workspace};

/// Runs the faults that `args` select against a gateway in memory, in an optimised build.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let mut command = workspace::cargo("run");
    command.args([
        "--locked",
        "--profile",
        "campaign",
        "--package",
        "sluicegate-campaign",
        "--",
    ]);
    process::echoed(command.args(workspace::with_page(args, "tests/campaign/LOG.md")))
}

/// The campaign of the short tier, in the build of the tests.
pub(crate) fn short() -> Outcome {
    suite::build()?;
    let seed = seed::current()?.to_string();
    process::echoed(
        Command::new(workspace::binary("campaign")?).args(["--faults", "20000", "--seed", &seed]),
    )
}

/// Runs a million faults with a new seed, and writes the log.
pub(crate) fn long() -> Outcome<String> {
    let seed = seed::fresh();
    run(&[
        "--write",
        "--faults",
        "1000000",
        "--seed",
        &seed.to_string(),
    ]
    .map(OsString::from))?;
    Ok(format!("passed with seed {seed}"))
}
