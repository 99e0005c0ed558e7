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
    let copy = folder.join(if is_lean {
        "sluicegate-lean"
    } else {
        "sluicegate"
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
    let built = release(&target, package(is_lean))?;
    Ok(built.join("sluicegate"))
}

/// Builds the gateway in release with its stores and without engines, and returns its path.
pub(crate) fn with_stores() -> Outcome<PathBuf> {
    let mut selected = LEAN.to_vec();
    selected.extend(["--features", "sqlite,valkey"]);
    let built = release(&workspace::target()?.join("stores"), &selected)?;
    Ok(built.join("sluicegate"))
}

/// Builds the programs of the benches, and returns their folder. In a build of their own, so that
/// they enable no feature of the gateway.
pub(crate) fn programs() -> Outcome<PathBuf> {
    release(
        &lean()?,
        &["--all-features", "--package", "sluicegate-benches"],
    )
}

/// Builds in release into a target folder, and returns the folder of the programs.
fn release(target: &Path, selected: &[&str]) -> Outcome<PathBuf> {
    let mut build = workspace::cargo("build");
    build
        .args(["--release", "--locked", "--target-dir"])
        .arg(target);
    process::run(build.args(selected))?;
    Ok(target.join("release"))
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
