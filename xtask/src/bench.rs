//! `cargo xtask bench`: runs all benches and shows their output.

use std::ffi::OsString;
use std::process::Command;

use crate::outcome::Outcome;
use crate::{needs, process, programs, workspace};

/// Runs the benches one after another. If the first of `args` is `gateway`, only the bench of the gateway is run,
/// with the remaining arguments; otherwise `args` are passed to the other benches, which are programs of crates.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    match args {
        [first, rest @ ..] if first == "gateway" => return programs::run(PROGRAM, PAGE, rest),
        [first, rest @ ..] if first == "instructions" => return instructions(rest),
        _ => {}
    }
    for (package, bench) in BENCHES {
        let mut command = workspace::cargo("bench");
        command.args(["--locked", "--package", package, "--all-features", "--bench", bench, "--"]).args(args);
        println!("== {}", process::shown(&command));
        process::run(&mut command)?;
    }
    programs::run(PROGRAM, PAGE, &[])
}

/// Compares the instructions of a relayed request and event with the committed figures.
pub(crate) fn hold_instructions() -> Outcome {
    instructions(&[])
}

/// Counts instructions; `args` may request that the figures are written.
fn instructions(args: &[OsString]) -> Outcome {
    needs::valgrind()?;
    let mut command = Command::new(programs::build()?.join(format!("instructions{}", std::env::consts::EXE_SUFFIX)));
    command.arg(workspace::root().join("tests/benches/INSTRUCTIONS.toml")).args(args);
    process::run(&mut command)
}

/// Package and bench.
const BENCHES: [(&str, &str); 2] = [("sluicegate-benches", "sse_decode"), ("sluicegate-text-engine", "decode")];

/// The bench of the gateway, and the file of its table.
const PROGRAM: &str = "against_bare_proxy";
const PAGE: &str = "RESULTS.md";
