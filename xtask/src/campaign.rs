//! `cargo xtask campaign`: seeded faults by the hundred thousand.

use std::ffi::OsString;

use crate::{Outcome, process, workspace};

/// Puts the faults that `args` ask for to a gateway in memory.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    put("campaign", args)
}

/// The campaign that every change has to pass, in a build that is quick to make.
pub(crate) fn usual() -> Outcome {
    put("dev", &[])
}

fn put(profile: &str, args: &[OsString]) -> Outcome {
    let mut command = process::cargo("run");
    command.args(["--locked", "--profile", profile, "--package", "sluicegate-campaign", "--"]);
    for arg in args {
        command.arg(arg);
        if arg == "--write" {
            command.arg(workspace::root().join("tests/campaign/LOG.md"));
        }
    }
    println!("== {}", process::shown(&command));
    process::run(&mut command)
}
