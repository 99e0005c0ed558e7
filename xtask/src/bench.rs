//! `cargo xtask bench`: every bench, its output as it comes.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::{Outcome, process, workspace};

/// Runs the benches one after another. When the first of `args` is `gateway`, only that of the gateway is run, and the
/// rest goes to it; else `args` go to the others, which are bench programs of crates.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    if let Some((first, rest)) = args.split_first()
        && first == "gateway"
    {
        return gateway(rest);
    }
    for (package, bench) in BENCHES {
        let mut command = process::cargo("bench");
        command.args(["--locked", "--package", package, "--bench", bench, "--"]).args(args);
        println!("== {}", process::shown(&command));
        process::run(&mut command)?;
    }
    gateway(&[])
}

/// The gateway in front of an upstream, against a bare proxy.
fn gateway(args: &[OsString]) -> Outcome {
    // Each in a build of its own, so that neither has features on for the sake of the other. Without engines, since
    // none is asked.
    for package in [&["sluicegate-server", "--no-default-features"][..], &["sluicegate-benches"]] {
        process::run(process::cargo("build").args(["--release", "--locked", "--package"]).args(package))?;
    }
    let program = workspace::program("release")?.with_file_name("against_bare_proxy");
    // Thousands of streams need more descriptors than most systems give by default.
    let limit = Command::new("prlimit").arg("--version").stdout(Stdio::null()).status().is_ok();
    let mut command = if limit { Command::new("prlimit") } else { Command::new(&program) };
    if limit {
        command.arg(DESCRIPTORS).arg(&program);
    }
    for arg in args {
        command.arg(arg);
        if arg == "--write" {
            command.arg(workspace::root().join("tests/benches/RESULTS.md"));
        }
    }
    println!("== {}", process::shown(&command));
    process::run(&mut command)
}

/// Package and bench.
const BENCHES: [(&str, &str); 2] = [("sluicegate-sse", "decode"), ("sluicegate-local", "decode")];

/// The soft limit: the hard one stays.
const DESCRIPTORS: &str = "--nofile=16384:";
