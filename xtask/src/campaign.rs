//! `cargo xtask campaign`: runs seeded faults by the hundred thousand.

use std::ffi::OsString;
use std::process::Command;

use crate::outcome::Outcome;
use crate::{process, seed, suite, workspace};

/// Runs the faults that `args` select against a gateway in memory, in an optimised build.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let line = "run --locked --profile campaign --package sluicegate-campaign --";
    let mut command = workspace::cargo(line);
    process::echoed(command.args(workspace::with_page(args, "tests/campaign/expected.toml")))
}

/// Runs the campaign of a change, in the build of the tests.
pub(crate) fn short() -> Outcome {
    suite::build()?;
    let seed = seed::current()?.to_string();
    let mut campaign = Command::new(workspace::binary("campaign")?);
    process::echoed(campaign.args(["--faults", "10000", "--seed", &seed]))
}

/// Runs a million faults with a new seed.
pub(crate) fn nightly() -> Outcome {
    let seed = seed::fresh().to_string();
    run(&["--faults", "1000000", "--seed", &seed].map(OsString::from))
}
