//! `cargo xtask bench` and `cargo xtask soak`: run the benches of the crates, and the programs of
//! `tests/benches` with a gateway without engines.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::outcome::Outcome;
use crate::{needs, process, workspace};

/// Runs the benches one after another. If the first of `args` is `gateway`, only the bench of the
/// gateway is run, with the remaining arguments; otherwise `args` are passed to the other benches,
/// which are programs of crates.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    match args {
        [first, rest @ ..] if first == "gateway" => return gateway(rest),
        [first, rest @ ..] if first == "instructions" => return instructions(rest),
        _ => {}
    }
    for (package, bench) in BENCHES {
        let mut command = workspace::cargo("bench");
        command
            .args([
                "--locked",
                "--package",
                package,
                "--all-features",
                "--bench",
                bench,
                "--",
            ])
            .args(args);
        process::echoed(&mut command)?;
    }
    gateway(&[])
}

pub(crate) fn soak(args: &[OsString]) -> Outcome {
    program("soak", "tests/benches/SOAK.md", args)
}

/// Counts the instructions of a relayed request and event, and compares them with the committed
/// figures; `args` may request that they are written.
pub(crate) fn instructions(args: &[OsString]) -> Outcome {
    needs::valgrind()?;
    let mut command = Command::new(build()?.join("instructions"));
    process::run(
        command
            .arg(workspace::root().join("tests/benches/INSTRUCTIONS.toml"))
            .args(args),
    )
}

fn gateway(args: &[OsString]) -> Outcome {
    program("against_bare_proxy", "tests/benches/RESULTS.md", args)
}

/// Runs a program with the limit of file descriptors raised as far as possible: thousands of
/// streams need more than most systems permit by default.
fn program(name: &str, page: &str, args: &[OsString]) -> Outcome {
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"ulimit -S -n "$(ulimit -H -n)"; exec "$0" "$@""#])
        .arg(build()?.join(name));
    process::echoed(command.args(workspace::with_page(args, page)))
}

/// Builds the gateway and the programs in release, in a separate folder: the gateway in the usual
/// one keeps its engines.
fn build() -> Outcome<PathBuf> {
    needs::compiler()?;
    let target = workspace::target()?.join("lean");
    // Each in a separate build, so that neither enables features of the other. Without engines,
    // since none is used.
    for package in [
        &["sluicegate-server", "--no-default-features"][..],
        &["sluicegate-benches", "--all-features"],
    ] {
        let mut command = workspace::cargo("build");
        command
            .args(["--release", "--locked", "--target-dir"])
            .arg(&target)
            .arg("--package")
            .args(package);
        process::run(&mut command)?;
    }
    Ok(target.join("release"))
}

/// Package and bench.
const BENCHES: [(&str, &str); 2] = [
    ("sluicegate-benches", "sse_decode"),
    ("sluicegate-text-engine", "decode"),
];
