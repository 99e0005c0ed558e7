//! `cargo xtask nightly`: the checks that take too long for every change.
//!
//! The nightly workflow runs each step as a job of its own; its log and findings are artifacts. A
//! finding becomes a committed input or test, not a result.

use crate::outcome::Outcome;
use crate::steps::Step;
use crate::{
    bench, campaign, clients, deny, dist, fuzz, interop, layers, mutate, process, schemathesis,
    seed, suite, workspace,
};

/// The steps.
pub(crate) const STEPS: &[Step] = &[
    ("alone", "tests and docs of each crate alone", alone),
    ("advisories", "the RustSec database", || {
        deny::check(&["advisories"])
    }),
    ("chained", "two gateways in a row", suite::chained),
    ("packages", "archive, .deb", dist::check_packaging),
    ("python", "both Python SDKs, all tests", clients::python_all),
    ("langchain", "LangChain, llm-comply", clients::langchain),
    ("node", "the Node SDKs, current and previous", clients::node),
    ("interop", "in front of llama-cpp-python", || {
        interop::run(&[])
    }),
    ("flakes", "ten test runs beside fuzzing", suite::ten_runs),
    ("fuzz", "every fuzz target for five minutes", fuzz::nightly),
    ("cuts", "streams that are cut at every position", cuts),
    ("schemathesis", "100 requests for each operation", || {
        schemathesis::examples(100, seed::fresh(), &[])
    }),
    ("campaign", "a million seeded faults", campaign::nightly),
    ("mutate", "the mutations of tests/mutations", || {
        mutate::run(&mutate::Args::default())
    }),
    ("soak", "soak tests of the release build", || {
        bench::program("soak", &[])
    }),
    ("instructions", "counts since yesterday", since_yesterday),
    ("linear", "instructions for n and 4 n parts", || {
        bench::linear(&[])
    }),
];

/// Compares the instruction counts with the last commit that is older than a day.
fn since_yesterday() -> Outcome {
    let mut log = workspace::git("rev-list -1 --before=1.day.ago HEAD");
    let commit = process::output(&mut log)?;
    bench::instructions(&["--against".into(), commit.trim().into()])
}

/// Tests and documents the crates that are published separately.
fn alone() -> Outcome {
    for package in layers::published() {
        for line in ["test", "doc --no-deps"] {
            let mut command = workspace::cargo(line);
            process::echoed(command.args(["--locked", "--quiet", "--package", &package]))?;
        }
    }
    Ok(())
}

/// Splits SSE streams at every two positions, and resets upstream streams after each byte.
fn cuts() -> Outcome {
    process::echoed(&mut workspace::cargo(
        "test --locked --profile quick --package sluicegate-sse -- --ignored --nocapture",
    ))?;
    process::echoed(&mut workspace::cargo(
        "test --locked --package sluicegate-server --no-default-features --test upstreams \
         -- --ignored a_reset_behind_each_byte",
    ))
}
