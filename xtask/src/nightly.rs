//! `cargo xtask nightly`: the checks that take too long for every change.
//!
//! The nightly workflow runs each step as a job of its own; its log and findings are artifacts. A
//! finding becomes a committed input or test, not a result.

use std::fs;
use std::io::ErrorKind;

use crate::outcome::{At as _, Outcome};
use crate::steps::{Selection, Step};
use crate::{
    bench, campaign, clients, deny, fuzz, interop, layers, mutate, process, schemathesis, suite,
    workspace,
};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// The share of the mutations or mutants, such as 1/4
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
}

/// Runs the selected steps.
pub(crate) fn run(args: &Args) -> Outcome {
    args.selection.run("nightly", &steps(args.shard.clone()))
}

/// The names of all steps.
pub(crate) fn names() -> Vec<&'static str> {
    steps(None).iter().map(|step| step.name).collect()
}

fn steps(shard: Option<String>) -> Vec<Step> {
    vec![
        Step::new(
            "alone",
            "the tests and docs of each protocol crate with its own features only",
            alone,
        ),
        Step::new(
            "advisories",
            "cargo-deny: the locked packages in the RustSec database",
            deny::advisories,
        ),
        Step::new(
            "chained",
            "the replies of the embedded model through two gateways in a row",
            suite::chained,
        ),
        Step::new(
            "python",
            "all tests of the current and the previous Python SDKs",
            clients::python_all,
        ),
        Step::new("node", "the Node SDKs, current and previous", || {
            clients::node(&[])
        }),
        Step::new(
            "interop",
            "the gateway in front of llama-cpp-python",
            || interop::run(&[]),
        ),
        Step::new(
            "flakes",
            "all Rust tests ten times with new seeds, beside fuzz targets",
            suite::ten_runs,
        ),
        Step::new("fuzz", "every fuzz target for five minutes", fuzz::nightly),
        Step::new(
            "cuts",
            "SSE streams split at every two positions; upstream streams reset after each byte",
            cuts,
        ),
        Step::new(
            "schemathesis",
            "100 random requests an operation, with a new seed",
            schemathesis::nightly,
        ),
        Step::new(
            "campaign",
            "a million seeded faults, with a new seed",
            campaign::nightly,
        ),
        Step::new(
            "mutate",
            "the mutations of tests/mutations, or the share of --shard",
            || mutate::run(&[]),
        ),
        Step::new("soak", "long soak tests of the release build", || {
            bench::soak(&[])
        }),
        Step::new(
            "instructions",
            "instruction counts against the commit of the day before",
            since_yesterday,
        ),
        Step::new(
            "cold",
            "everything built from an empty target folder",
            cold_build,
        ),
    ]
}

/// Compares the instruction counts with the last commit that is older than a day.
fn since_yesterday() -> Outcome {
    let mut log = workspace::git(&["rev-list", "-1", "--before=1 day ago", "HEAD"]);
    let commit = process::output(&mut log)?;
    bench::instructions(&["--against".into(), commit.trim().into()])
}

/// Tests and documents the crates that are published separately.
fn alone() -> Outcome {
    for package in layers::published()? {
        let args = ["--locked", "--quiet", "--package", &package];
        process::echoed(workspace::cargo("test").args(args))?;
        process::echoed(workspace::cargo("doc").arg("--no-deps").args(args))?;
    }
    Ok(())
}

fn cuts() -> Outcome {
    let mut test = workspace::cargo("test");
    test.args(["--locked", "--profile", "quick"]);
    test.args(["--package", "sluicegate-sse"]);
    process::echoed(test.args(["--", "--ignored", "--nocapture"]))?;
    let mut test = workspace::cargo("test");
    test.args(["--locked", "--package", "sluicegate-server"]);
    test.args(["--no-default-features", "--test", "upstreams"]);
    process::echoed(test.args(["--", "--ignored", "a_reset_behind_each_byte"]))
}

/// Builds everything in a separate target folder that is empty before, and removes it.
fn cold_build() -> Outcome {
    let folder = workspace::target()?.join("cold");
    let clear = || match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at(&folder),
        _ => Ok(()),
    };
    clear()?;
    let mut build = workspace::cargo("build");
    build.args(["--workspace", "--exclude", "xtask", "--bins", "--tests"]);
    process::run(build.args(["--locked", "--target-dir"]).arg(&folder))?;
    clear()
}
