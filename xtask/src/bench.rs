//! `cargo xtask bench`: every bench, its output as it comes.

use std::ffi::OsString;
use std::process::Command;

use crate::{Outcome, needs, process, programs, workspace};

/// Runs the benches one after another. When the first of `args` is `gateway`, only that of the gateway is run, and the
/// rest goes to it; else `args` go to the others, which are bench programs of crates.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    if let Some((first, rest)) = args.split_first()
        && first == "gateway"
    {
        return programs::run(PROGRAM, PAGE, rest);
    }
    if let Some((first, rest)) = args.split_first()
        && first == "instructions"
    {
        return instructions(rest);
    }
    for (package, bench) in BENCHES {
        let mut command = process::cargo("bench");
        command.args(["--locked", "--package", package, "--all-features", "--bench", bench, "--"]).args(args);
        println!("== {}", process::shown(&command));
        process::run(&mut command)?;
    }
    programs::run(PROGRAM, PAGE, &[])
}

/// Holds the instructions of a relayed request and event against the committed figures.
pub(crate) fn hold_instructions() -> Outcome {
    instructions(&[])
}

/// Counts instructions; `args` may ask to write the figures anew.
fn instructions(args: &[OsString]) -> Outcome {
    needs::valgrind()?;
    let mut command = Command::new(programs::build()?.join(format!("instructions{}", std::env::consts::EXE_SUFFIX)));
    command.arg(workspace::root().join("tests/benches/INSTRUCTIONS.toml")).args(args);
    process::run(&mut command)
}

/// Package and bench.
const BENCHES: [(&str, &str); 2] = [("sluicegate-benches", "sse_decode"), ("sluicegate-text-engine", "decode")];

/// What measures the gateway, and where its table is written.
const PROGRAM: &str = "against_bare_proxy";
const PAGE: &str = "RESULTS.md";
