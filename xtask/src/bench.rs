//! `cargo xtask bench`: every bench, its output as it comes.

use std::ffi::OsString;

use crate::{Outcome, process};

/// Runs the benches one after another; `args` go to each bench program.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    for (package, bench) in BENCHES {
        let mut command = process::cargo("bench");
        command.args(["--locked", "--package", package, "--bench", bench, "--"]).args(args);
        println!("== {}", process::shown(&command));
        process::run(&mut command)?;
    }
    Ok(())
}

/// Package and bench.
const BENCHES: [(&str, &str); 2] = [("sluicegate-sse", "decode"), ("sluicegate-local", "decode")];
