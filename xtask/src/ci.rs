//! `cargo xtask ci`: every check that has to pass before a change lands, in the order that finds a
//! mistake soonest. Each step fails only for a fault in the product, its tests or its pages.

use crate::outcome::Outcome;
use crate::steps::{Selection, Step};
use crate::{
    bench, campaign, deny, layers, pages, process, schemathesis, test, tidy, workflows, workspace,
};

/// Runs the selected steps.
pub(crate) fn run(selection: &Selection) -> Outcome {
    selection.run("ci", &steps())
}

fn steps() -> Vec<Step> {
    vec![
        Step::new("format", "rustfmt", || {
            process::echoed(workspace::cargo("fmt").args(["--all", "--check"]))
        }),
        Step::new(
            "tidy",
            "problems that the compiler does not find, in every file",
            tidy::run,
        ),
        Step::new("workflows", "actionlint", workflows::run),
        Step::new(
            "layers",
            "dependencies between crates and within them, and features",
            layers::run,
        ),
        Step::new(
            "deny",
            "cargo-deny: licences, banned packages and sources",
            deny::packages,
        ),
        Step::new("clippy", "clippy and compiler warnings", clippy),
        Step::new("docs", "rustdoc without warnings", docs),
        Step::new(
            "alone",
            "each protocol crate compiles with its own features only",
            alone,
        ),
        Step {
            name: "tests",
            about: "`cargo xtask test`: Rust tests, examples, tests with real servers, current Python SDKs",
            run: Box::new(test::everything),
        },
        Step::new(
            "pages",
            "every row of tests/FAULTS.md and tests/SERVERS.md has tests, and FAULTS.md is current",
            pages::check,
        ),
        Step::new(
            "schemathesis",
            "random requests, checked against the OpenAPI document",
            schemathesis::smoke,
        ),
        Step::new("campaign", "20,000 seeded faults", campaign::short),
        Step::new(
            "instructions",
            "instructions of a relayed request, event and conversation",
            || bench::instructions(&[]),
        ),
    ]
}

fn clippy() -> Outcome {
    let mut clippy = workspace::cargo("clippy");
    clippy.args(["--workspace", "--all-targets", "--all-features", "--locked"]);
    process::echoed(clippy.args(["--", "-D", "warnings"]))
}

fn docs() -> Outcome {
    let mut doc = workspace::cargo("doc");
    process::echoed(
        doc.args(["--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Compiles the crates that are published separately, each with its own features only. Their tests
/// run alone every night.
fn alone() -> Outcome {
    layers::published()?.iter().try_for_each(|package| {
        let check = ["--locked", "--quiet", "--package", package];
        process::echoed(workspace::cargo("check").args(check))
    })
}
