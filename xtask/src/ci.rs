//! `cargo xtask ci`: every check that has to pass before a change lands, in the order that finds a
//! mistake soonest. Each step fails only for a fault in the product, its tests or its pages.

use crate::outcome::Outcome;
use crate::steps::{Selection, Step};
use crate::{
    bench, campaign, deny, layers, pages, process, schemathesis, test, tidy, workflows, workspace,
};

/// Runs the selected steps.
pub(crate) fn run(selection: &Selection) -> Outcome {
    selection.run("ci", STEPS)
}

const STEPS: &[Step] = &[
    ("format", "rustfmt", format),
    ("tidy", "the text of every file", tidy::run),
    ("workflows", "actionlint", workflows::run),
    ("layers", "dependencies, imports and features", layers::run),
    (
        "deny",
        "licences, banned packages and sources",
        deny::packages,
    ),
    ("clippy", "clippy and compiler warnings", clippy),
    ("docs", "rustdoc without warnings", docs),
    ("alone", "each protocol crate compiles alone", alone),
    ("tests", "`cargo xtask test`", test::everything),
    (
        "pages",
        "lists of tests: FAULTS.md and SERVERS.md",
        pages::check,
    ),
    (
        "schemathesis",
        "random requests against OpenAPI",
        schemathesis::smoke,
    ),
    ("campaign", "20,000 seeded faults", campaign::short),
    ("instructions", "instruction counts", || {
        bench::instructions(&[])
    }),
];

fn format() -> Outcome {
    process::echoed(workspace::cargo("fmt").args(["--all", "--check"]))
}

fn clippy() -> Outcome {
    let mut clippy = workspace::cargo("clippy");
    clippy.args(["--workspace", "--all-targets", "--all-features", "--locked"]);
    process::echoed(clippy.args(["--", "-D", "warnings"]))
}

fn docs() -> Outcome {
    let mut doc = workspace::cargo("doc");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    process::echoed(doc.args(["--workspace", "--no-deps", "--locked"]))
}

/// Compiles the crates that are published separately, each with its own features only. Their tests
/// run alone every night.
fn alone() -> Outcome {
    layers::published()?.iter().try_for_each(|package| {
        let check = ["--locked", "--quiet", "--package", package];
        process::echoed(workspace::cargo("check").args(check))
    })
}
