//! `cargo xtask dist`: the release build of the gateway, trained by a profile of its work if
//! requested.

mod pgo;

use std::path::{Path, PathBuf};

use crate::outcome::{At as _, Outcome};
use crate::{needs, process, workspace};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Arrange the code by a profile of the benches' work
    #[arg(long = "pgo")]
    is_trained: bool,
    /// Leave out the embedded engines
    #[arg(long = "lean")]
    is_lean: bool,
}

/// Builds the gateway in release and copies it to `target/dist`.
pub(crate) fn run(args: &Args) -> Outcome {
    needs::compiler()?;
    let built = match args.is_trained {
        true => pgo::build(args.is_lean)?,
        false => build(args.is_lean)?,
    };
    let folder = workspace::target()?.join("dist");
    std::fs::create_dir_all(&folder).at(&folder)?;
    let copy = folder.join(match args.is_lean {
        true => "sluicegate-lean",
        false => "sluicegate",
    });
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

/// Builds the gateway without engines and stores, and with the allocator of a release.
pub(crate) const LEAN: &str =
    "build --package sluicegate-server --no-default-features --features jemalloc";
