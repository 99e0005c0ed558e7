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

/// Runs the selected steps.
pub(crate) fn run(selection: &Selection) -> Outcome {
    selection.run("nightly", STEPS)
}

/// The steps.
pub(crate) const STEPS: &[Step] = &[
    (
        "alone",
        "tests and docs of each protocol crate alone",
        alone,
    ),
    ("advisories", "the RustSec database", deny::advisories),
    ("chained", "two gateways in a row", suite::chained),
    (
        "python",
        "all tests of both Python SDKs",
        clients::python_all,
    ),
    ("node", "the Node SDKs, current and previous", || {
        clients::node(&[])
    }),
    ("interop", "in front of llama-cpp-python", || {
        interop::run(&[])
    }),
    (
        "flakes",
        "ten runs of all Rust tests, beside fuzzing",
        suite::ten_runs,
    ),
    ("fuzz", "every fuzz target for five minutes", fuzz::nightly),
    ("cuts", "streams that are cut at every position", cuts),
    (
        "schemathesis",
        "100 requests for each operation",
        schemathesis::nightly,
    ),
    ("campaign", "a million seeded faults", campaign::nightly),
    ("mutate", "the mutations of tests/mutations", || {
        mutate::run(&mutate::Args::default())
    }),
    ("soak", "soak tests of the release build", || {
        bench::soak(&[])
    }),
    (
        "instructions",
        "instruction counts since yesterday",
        since_yesterday,
    ),
    ("cold", "a build from an empty target folder", cold_build),
];

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

/// Splits SSE streams at every two positions, and resets upstream streams after each byte.
fn cuts() -> Outcome {
    let mut test = workspace::cargo("test");
    test.args([
        "--locked",
        "--profile",
        "quick",
        "--package",
        "sluicegate-sse",
    ]);
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
