//! Runs the programs of `tests/benches` with a gateway without engines.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::outcome::Outcome;
use crate::{needs, process, workspace};

/// Builds the gateway and the program `name` in release, and runs it with `args`. The file `page` of `tests/benches`
/// is added to `--write`.
///
/// # Errors
///
/// If something cannot be built, or the program does not succeed.
pub(crate) fn run(name: &str, page: &str, args: &[OsString]) -> Outcome {
    let mut command = with_descriptors(build()?.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)));
    for arg in args {
        command.arg(arg);
        if arg == "--write" {
            command.arg(workspace::root().join("tests/benches").join(page));
        }
    }
    println!("== {}", process::shown(&command));
    process::run(&mut command)
}

/// Builds everything in a separate folder: the gateway in the usual one keeps its engines.
pub(crate) fn build() -> Outcome<PathBuf> {
    needs::compiler()?;
    let target = workspace::target()?.join("lean");
    // Each in a separate build, so that neither enables features of the other. Without engines, since none is used.
    for package in [&["sluicegate-server", "--no-default-features"][..], &["sluicegate-benches", "--all-features"]] {
        let mut command = workspace::cargo("build");
        command.args(["--release", "--locked", "--target-dir"]).arg(&target).arg("--package").args(package);
        process::run(&mut command)?;
    }
    Ok(target.join("release"))
}

/// Raises the limit of file descriptors as far as possible, if there is a program for it: thousands of streams need
/// more than most systems permit by default.
fn with_descriptors(program: PathBuf) -> Command {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let most = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    let prlimit = Command::new("prlimit").arg("--version").stdout(Stdio::null()).status().is_ok();
    match most.filter(|_| prlimit) {
        Some(most) => {
            let mut command = Command::new("prlimit");
            command.arg(format!("--nofile={most}:")).arg(program);
            command
        }
        None => Command::new(program),
    }
}
