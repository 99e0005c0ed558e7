//! `cargo xtask dist`: the release build of the gateway, trained by a profile of its work if
//! requested.

mod pgo;

use std::path::PathBuf;

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
    let &Args {
        is_trained,
        is_lean,
    } = args;
    needs::compiler()?;
    let built = match is_trained {
        true => pgo::build(is_lean)?,
        false => build(is_lean)?,
    };
    let folder = workspace::target()?.join("dist");
    std::fs::create_dir_all(&folder).at(&folder)?;
    let name = if is_lean {
        "sluicegate-lean"
    } else {
        "sluicegate"
    };
    let copy = folder.join(name);
    let length = std::fs::copy(&built, &copy).at(&copy)?;
    println!("{}: {} MiB", copy.display(), length >> 20);
    Ok(())
}

/// Builds the gateway in release: with its engines, or lean without them. Returns its path.
pub(crate) fn build(is_lean: bool) -> Outcome<PathBuf> {
    let mut command = workspace::cargo("build");
    command
        .args(["--release", "--locked"])
        .args(package(is_lean));
    if is_lean {
        command.arg("--target-dir").arg(lean()?);
    }
    process::run(&mut command)?;
    release(is_lean)
}

/// Builds the gateway in release with its stores and without engines, and returns its path.
pub(crate) fn with_stores() -> Outcome<PathBuf> {
    let target = workspace::target()?.join("stores");
    let mut command = workspace::cargo("build");
    command
        .args(["--release", "--locked"])
        .args(package(true))
        .args(["--features", "sqlite,valkey", "--target-dir"])
        .arg(&target);
    process::run(&mut command)?;
    Ok(target.join("release/sluicegate"))
}

/// The path of the build with engines, or lean without them.
pub(crate) fn release(is_lean: bool) -> Outcome<PathBuf> {
    let target = match is_lean {
        true => lean()?,
        false => workspace::target()?,
    };
    Ok(target.join("release/sluicegate"))
}

/// Builds the programs, and returns their folder. In a build of their own, so that they enable no
/// feature of the gateway.
pub(crate) fn programs() -> Outcome<PathBuf> {
    let mut command = workspace::cargo("build");
    command
        .args(["--release", "--locked", "--all-features", "--target-dir"])
        .arg(lean()?)
        .args(["--package", "sluicegate-benches"]);
    process::run(&mut command)?;
    Ok(lean()?.join("release"))
}

/// A separate folder for builds without engines: the gateway in the usual one keeps its engines.
pub(crate) fn lean() -> Outcome<PathBuf> {
    Ok(workspace::target()?.join("lean"))
}

fn package(is_lean: bool) -> &'static [&'static str] {
    match is_lean {
        true => LEAN,
        false => &["--package", "sluicegate-server"],
    }
}

/// The gateway without engines and stores, and with the allocator of a release.
pub(crate) const LEAN: &[&str] = &[
    "--package",
    "sluicegate-server",
    "--no-default-features",
    "--features",
    "jemalloc",
];
