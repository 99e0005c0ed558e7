//! `cargo xtask serve`: builds and runs the gateway from a bare checkout.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::process::Killed;
use crate::{fetch_model, needs, process, workspace};

/// Downloads the model if it is absent while cargo builds with the quick profile, and becomes
/// `sluicegate serve` with `args`. Without arguments nothing can ask for a store, and a first try
/// needs no jemalloc. The build leaves both out, and takes a minute and a half less.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    needs::compiler()?;
    let mut build = workspace::cargo("build --locked --package sluicegate-server");
    build.args(["--profile", PROFILE]);
    if args.is_empty() {
        build.args(["--no-default-features", "--features", ENGINES]);
    }
    let mut building = Killed(process::start(&mut build)?);
    fetch_model::run()?;
    process::succeeded(&build, building.0.wait().at("cargo build")?)?;
    let mut serve = Command::new(workspace::target()?.join(PROFILE).join("sluicegate"));
    // In place of this process, so that it receives signals and sets the exit status.
    let error = serve.arg("serve").args(args).exec();
    Err(process::not_started(&serve, &error))
}

/// The profile of a first build: a release build takes minutes longer.
const PROFILE: &str = "quick";
/// The features of the embedded engines.
const ENGINES: &str = "image-engine,text-engine";
