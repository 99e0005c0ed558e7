//! `cargo xtask dist`: the release build of the gateway, trained by a profile of its work if
//! requested.

mod pgo;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{clients, needs, process, python, suite, workspace};

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
    let flags: &[_] = if args.is_static { &[STATIC] } else { &[] };
    let built = match (args.is_trained, args.is_static) {
        (true, _) => pgo::build(flags, args.is_lean)?,
        (false, true) => flagged(&workspace::target()?.join("static"), flags, args.is_lean)?,
        (false, false) => build(args.is_lean)?,
    };
    let folder = workspace::target()?.join("dist");
    std::fs::create_dir_all(&folder).at(&folder)?;
    let kind = if args.is_lean { "-lean" } else { "" };
    let copy = folder.join(format!("sluicegate{kind}"));
    let length = std::fs::copy(&built, &copy).at(&copy)?;
    println!("{}: {} MiB", copy.display(), length >> 20);
    Ok(())
}

/// Builds the gateway in release: with its engines, or lean without them. Returns its path.
pub(crate) fn build(is_lean: bool) -> Outcome<PathBuf> {
    let target = match is_lean {
        true => lean()?,
        false => workspace::target()?,
    };
    Ok(release(&target, gateway(is_lean))?.join("sluicegate"))
}

/// Builds the gateway in release with flags of the compiler, and returns its path. With a named
/// target, the flags are not for the programs that run during the build.
fn flagged(target: &Path, flags: &[&str], is_lean: bool) -> Outcome<PathBuf> {
    let host = host()?;
    let mut build = workspace::cargo(gateway(is_lean));
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
    process::run(clients::with_programs(&mut python::script("packaging")?)?)
}

/// Builds the gateway in release with its stores and without engines, and returns its path.
pub(crate) fn with_stores() -> Outcome<PathBuf> {
    let line = format!("{LEAN} --features sqlite,valkey");
    let built = release(&workspace::target()?.join("stores"), &line)?;
    Ok(built.join("sluicegate"))
}

/// Builds programs of the benches, and returns their folder. In a build of their own, so that they
/// enable no feature of the gateway.
pub(crate) fn programs(which: &str) -> Outcome<PathBuf> {
    let line = format!("build --all-features --package sluicegate-benches {which}");
    release(&lean()?, &line)
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

/// The arguments of cargo that build the gateway.
fn gateway(is_lean: bool) -> &'static str {
    match is_lean {
        true => LEAN,
        false => "build --package sluicegate-server",
    }
}

/// The flag that links the C library into the program.
const STATIC: &str = "-Ctarget-feature=+crt-static";
/// Builds the gateway without engines and stores, and with the allocator of a release.
pub(crate) const LEAN: &str =
    "build --package sluicegate-server --no-default-features --features jemalloc";
