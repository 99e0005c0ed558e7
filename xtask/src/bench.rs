//! `cargo xtask bench`: every bench, its output as it comes.

use std::ffi::OsString;

use crate::{Outcome, process, programs};

/// Runs the benches one after another. When the first of `args` is `gateway`, only that of the gateway is run, and the
/// rest goes to it; else `args` go to the others, which are bench programs of crates.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    if let Some((first, rest)) = args.split_first()
        && first == "gateway"
    {
        return programs::run(PROGRAM, PAGE, rest);
    }
    for (package, bench) in BENCHES {
        let mut command = process::cargo("bench");
        command.args(["--locked", "--package", package, "--bench", bench, "--"]).args(args);
        println!("== {}", process::shown(&command));
        process::run(&mut command)?;
    }
    programs::run(PROGRAM, PAGE, &[])
}

/// Package and bench.
const BENCHES: [(&str, &str); 2] = [("sluicegate-sse", "decode"), ("sluicegate-local", "decode")];

/// What measures the gateway, and where its table is written.
const PROGRAM: &str = "against_bare_proxy";
const PAGE: &str = "RESULTS.md";
