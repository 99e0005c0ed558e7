//! `cargo xtask dist`: the release build of the gateway, trained by a profile of its work if
//! requested.

mod pgo;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{clients, fetch_model, needs, process, python, suite, workspace};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Arrange the code by a profile of the benches' work
    #[arg(long = "pgo")]
    is_trained: bool,
    /// Leave out the embedded engines
    #[arg(long = "lean")]
    is_lean: bool,
    /// Link the C library into the program, which then needs no other file
    #[arg(long = "static")]
    is_static: bool,
}

/// Builds the gateway in release and copies it to `target/dist`.
pub(crate) fn run(args: &Args) -> Outcome {
    needs::compiler()?;
    let flags = if args.is_static { STATIC } else { &[] };
    let line = if args.is_lean { STORES } else { ALL };
    let built = match (args.is_trained, args.is_static) {
        (true, _) => pgo::build(flags, line)?,
        (false, true) => flagged(&workspace::target()?.join("static"), flags, line)?,
        (false, false) => release(&target(args.is_lean)?, line)?.join("sluicegate"),
    };
    let folder = workspace::target()?.join("dist");
    std::fs::create_dir_all(&folder).at(&folder)?;
    let kind = if args.is_lean { "-lean" } else { "" };
    let copy = folder.join(format!("sluicegate{kind}"));
    let length = std::fs::copy(&built, &copy).at(&copy)?;
    println!("{}: {} MiB", copy.display(), length >> 20);
    Ok(())
}

/// Builds the gateway in release: with all its features, or with neither engines nor stores. Returns
/// its path.
pub(crate) fn build(is_lean: bool) -> Outcome<PathBuf> {
    let line = if is_lean { LEAN } else { ALL };
    Ok(release(&target(is_lean)?, line)?.join("sluicegate"))
}

/// Builds the gateway in release with flags of the compiler, and returns its path. With a named
/// target, the flags are not for the programs that run during the build.
fn flagged(target: &Path, flags: &[&str], line: &str) -> Outcome<PathBuf> {
    let host = host()?;
    let mut build = workspace::cargo(line);
    build.args(["--release", "--locked", "--target", &host, "--target-dir"]);
    let flags = flags.join("\u{1f}");
    process::echoed(build.arg(target).env("CARGO_ENCODED_RUSTFLAGS", flags))?;
    Ok(target.join(host).join("release/sluicegate"))
}

/// The target of this machine, such as `x86_64-unknown-linux-gnu`.
fn host() -> Outcome<String> {
    let printed = process::output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    Ok(printed.trim().to_owned())
}

/// Checks the files of `crates/server/packaging`.
pub(crate) fn check_packaging() -> Outcome {
    suite::product()?;
    let mut checks = python::script("packaging")?;
    checks.env("SLUICEGATE_MODEL", fetch_model::weights()?);
    process::run(clients::with_programs(&mut checks)?)
}

/// Builds the gateway in release with its stores and without engines, and returns its path.
pub(crate) fn with_stores() -> Outcome<PathBuf> {
    let built = release(&workspace::target()?.join("stores"), STORES)?;
    Ok(built.join("sluicegate"))
}

/// Builds programs of the benches, and returns their folder. In a build of their own, so that they
/// enable no feature of the gateway.
pub(crate) fn programs(which: &str) -> Outcome<PathBuf> {
    release(&lean()?, &[BENCHES, which].concat())
}

/// Completes a cargo command: it builds the gateway whose instructions are counted, without engines,
/// stores and jemalloc.
pub(crate) fn counted(mut cargo: Command) -> Command {
    workspace::without_own_package(&mut cargo);
    let profile = workspace::root().join("tests/benches/counts.toml");
    let line = "build --profile counts --locked --package sluicegate-server --no-default-features";
    cargo.args(line.split(' ')).arg("--config").arg(profile);
    cargo.current_dir(workspace::root());
    cargo
}

/// Builds in release into a target folder, and returns the folder of the programs.
fn release(target: &Path, line: &str) -> Outcome<PathBuf> {
    let mut build = workspace::cargo(line);
    build.args(["--release", "--locked", "--target-dir"]);
    process::run(build.arg(target))?;
    Ok(target.join("release"))
}

/// A separate folder for builds without engines: the gateway in the usual one keeps its engines.
pub(crate) fn lean() -> Outcome<PathBuf> {
    Ok(workspace::target()?.join("lean"))
}

/// The folder of builds with or without engines.
fn target(is_lean: bool) -> Outcome<PathBuf> {
    if is_lean { lean() } else { workspace::target() }
}

/// The flags of a program that needs no other file: neither a C library nor `/dev/random`.
const STATIC: &[&str] = &[
    "-Ctarget-feature=+crt-static",
    "-Cstrip=symbols",
    "--cfg=getrandom_backend=\"linux_getrandom\"",
];
/// Builds programs of the benches, which follow.
const BENCHES: &str = "build --all-features --package sluicegate-benches ";
/// Builds the gateway with all its features.
const ALL: &str = "build --package sluicegate-server";
/// Builds the gateway without engines, with the features that an image has by default.
const STORES: &str = "build --package sluicegate-server --no-default-features \
                      --features jemalloc,postgres,sqlite,valkey";
/// Builds the gateway without engines and stores, and with the allocator of a release.
const LEAN: &str = "build --package sluicegate-server --no-default-features --features jemalloc";
