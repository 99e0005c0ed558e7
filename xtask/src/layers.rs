//! Checks the crates against the layer table (ARCHITECTURE.md), and the imports within each crate.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Metadata};

use self::May::{Use, UseBelow};
use crate::outcome::{Outcome, no_problems};
use crate::{arrows, features, process, unrun, workspace};

/// One crate of `crates/`.
struct LayerCrate {
    /// Its row, counted from the bottom.
    row: u8,
    /// Its folder.
    name: &'static str,
    /// The crates that it may depend on, all of them in lower rows.
    may: May,
}

/// A set of crates.
enum May {
    /// The listed crates, separated by spaces.
    Use(&'static str),
    /// All crates in rows below this one.
    UseBelow(u8),
}

/// The table, top row first.
const LAYERS: &[LayerCrate] = &[
    layer(12, "server", UseBelow(12)),
    layer(11, "listen", Use(LISTEN)),
    layer(10, "admin", Use(ADMIN)),
    layer(10, "websocket", Use(ADMIN)),
    layer(9, "gateway", Use(GATEWAY)),
    layer(9, "otlp", Use("config policy telemetry upstream")),
    layer(8, "telemetry", Use("engine policy quota wire")),
    layer(8, "response-store", Use("config policy responses wire")),
    layer(7, "policy", Use(POLICY)),
    layer(6, "config", Use(CONFIG)),
    layer(6, "simulator", UseBelow(4)),
    layer(6, "answer", Use("engine relay translate upstream vendor")),
    layer(5, "upstream", Use("coding engine net sse wire")),
    layer(5, "fetch", Use("net picture")),
    layer(4, "text-engine", Use("engine picture wire")),
    layer(4, "image-engine", Use("engine picture wire")),
    layer(4, "accounting", Use("auth quota")),
    layer(4, "lease", Use("quota")),
    layer(4, "net", Use("")),
    layer(3, "translate", UseBelow(3)),
    layer(3, "relay", UseBelow(3)),
    layer(3, "field-map", UseBelow(3)),
    layer(3, "catalog", UseBelow(3)),
    layer(2, "responses", Use("sse wire")),
    layer(2, "chat", Use("sse wire")),
    layer(2, "messages", Use("sse wire")),
    layer(2, "images", Use("picture sse wire")),
    layer(2, "vendor", Use("engine wire")),
    layer(2, "quota", Use("engine wire")),
    layer(1, "engine", Use("wire")),
    layer(1, "auth", Use("")),
    layer(1, "picture", Use("")),
    layer(0, "wire", Use("")),
    layer(0, "sse", Use("")),
    layer(0, "coding", Use("")),
    layer(0, "console", Use("")),
];

const LISTEN: &str = "admin gateway policy telemetry websocket";
const ADMIN: &str = "accounting auth catalog chat coding config console engine field-map gateway images lease messages net policy \
                           quota response-store responses sse telemetry translate upstream vendor wire";
const GATEWAY: &str = "answer auth catalog chat coding config engine fetch field-map images messages net policy quota relay \
                             response-store responses sse telemetry translate upstream vendor wire";
const POLICY: &str =
    "accounting auth catalog config engine lease quota relay translate upstream vendor wire";
const CONFIG: &str = "accounting auth catalog fetch lease quota translate upstream vendor wire";
/// The crates whose tests may use another one in addition, and that crate.
const TEST_TOOLS: &str = "server simulator, gateway simulator, gateway image-engine, translate relay, translate field-map, config field-map, \
                           vendor messages";
/// Crates below this row are useful by themselves, and so have to build alone.
const FIRST_ROW_THAT_COMBINES: u8 = 3;
/// Crates below this row are free of I/O.
const FIRST_ROW_WITH_IO: u8 = 4;
/// Packages that no crate without I/O may depend on.
const WITH_IO: &[&str] = &["hyper", "mio", "socket2", "tokio"];

/// Reports every dependency, import and feature that is not allowed.
pub(crate) fn run() -> Outcome {
    let metadata = workspace::metadata()?;
    let mut found = sideways(&metadata);
    found.extend(impure()?);
    found.extend(without_lints(&metadata)?);
    found.extend(arrows::problems(&metadata)?);
    found.extend(unrun::problems(&metadata)?);
    found.extend(features::problems()?);
    no_problems("layers", &found)?;
    println!("dependencies match the layer table");
    Ok(())
}

/// The packages that are published separately.
pub(crate) fn published() -> impl Iterator<Item = String> {
    let alone = LAYERS
        .iter()
        .filter(|krate| krate.row < FIRST_ROW_THAT_COMBINES);
    alone.map(LayerCrate::package)
}

impl LayerCrate {
    /// Returns true if the crate may depend on `other`, in its tests or everywhere.
    fn may_use(&self, other: &Self, in_tests: bool) -> bool {
        let allowed = match self.may {
            Use(names) => names.split(' ').any(|name| name == other.name),
            UseBelow(row) => other.row < row,
        };
        let pair = format!("{} {}", self.name, other.name);
        let is_test_tool = self.name == other.name || TEST_TOOLS.split(", ").any(|it| it == pair);
        allowed || in_tests && is_test_tool
    }

    fn package(&self) -> String {
        format!("sluicegate-{}", self.name)
    }
}

const fn layer(row: u8, name: &'static str, may: May) -> LayerCrate {
    LayerCrate { row, name, may }
}

/// The crate in the folder `name`.
fn find(name: &str) -> Option<&'static LayerCrate> {
    LAYERS.iter().find(|krate| krate.name == name)
}

/// Declared dependencies that the table does not allow, and crates that it does not contain.
fn sideways(metadata: &Metadata) -> Vec<String> {
    let mut found = Vec::new();
    for package in &metadata.packages {
        let Some(folder) = workspace::crate_folder(package) else {
            continue;
        };
        let Some(krate) = find(folder) else {
            let table = "the layer table (xtask/src/layers.rs)";
            found.push(format!("crates/{folder} is missing from {table}"));
            continue;
        };
        if package.name.as_str() != krate.package() {
            found.push(format!("crates/{folder} must be named {}", krate.package()));
        }
        found.extend(package.dependencies.iter().filter_map(|dependency| {
            let other = find(dependency.path.as_ref()?.file_name()?)?;
            let in_tests = dependency.kind == DependencyKind::Development;
            let tests = if in_tests { "the tests of " } else { "" };
            let [from, to] = [krate, other].map(|it| format!("{} (row {})", it.name, it.row));
            let problem = format!("{tests}{from} may not depend on {to}");
            (!krate.may_use(other, in_tests)).then_some(problem)
        }));
    }
    found
}

/// Crates without I/O that depend on a runtime or a socket, directly or indirectly.
fn impure() -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for krate in LAYERS.iter().filter(|krate| krate.row < FIRST_ROW_WITH_IO) {
        let package = krate.package();
        // One package at a time: the others would add their features.
        let reached = reached(&package)?;
        for name in WITH_IO.iter().filter(|name| reached.contains(**name)) {
            found.push(format!(
                "{} must be free of I/O, but depends on {name}: `cargo tree -p {package} -e normal -i {name}`",
                krate.name
            ));
        }
    }
    Ok(found)
}

/// The names of all packages in the dependency tree of a package.
fn reached(package: &str) -> Outcome<BTreeSet<String>> {
    let mut tree = workspace::cargo("tree --locked --edges normal --prefix none --format {p}");
    let packages = process::output(tree.args(["--package", package]))?;
    let names = packages.lines().filter_map(|line| line.split(' ').next());
    Ok(names.map(str::to_owned).collect())
}

/// The packages that do not inherit the lints of the workspace, which forbid unsafe code.
fn without_lints(metadata: &Metadata) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for package in &metadata.packages {
        let manifest = package.manifest_path.as_str();
        if !workspace::read(manifest)?.contains("\n[lints]\nworkspace = true\n") {
            found.push(format!("{manifest}: must inherit the workspace's lints"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_matches_the_table() {
        let metadata = workspace::metadata().unwrap();
        assert_eq!(sideways(&metadata), [""; 0]);
        assert_eq!(without_lints(&metadata), Ok(Vec::new()));
    }

    #[test]
    fn a_dependency_within_a_row_and_an_unknown_crate_are_reported() {
        let mut metadata = workspace::metadata().unwrap();
        let mut packages = metadata.packages.iter_mut();
        let chat = packages
            .find(|package| package.name == "sluicegate-chat")
            .unwrap();
        let mut wrong = chat.dependencies[0].clone();
        wrong.path = Some("crates/responses".into());
        wrong.kind = DependencyKind::Normal;
        chat.dependencies.push(wrong);
        chat.manifest_path = "crates/chat/Cargo.toml".into();
        let mut stranger = chat.clone();
        stranger.manifest_path = "crates/cellar/Cargo.toml".into();
        metadata.packages.push(stranger);
        assert_eq!(
            sideways(&metadata),
            [
                "chat (row 2) may not depend on responses (row 2)",
                "crates/cellar is missing from the layer table (xtask/src/layers.rs)"
            ]
        );
    }

    #[test]
    fn every_permission_points_down() {
        for krate in LAYERS {
            let used = LAYERS.iter().filter(|other| krate.may_use(other, false));
            for other in used {
                assert!(other.row < krate.row, "{} uses {}", krate.name, other.name);
            }
            let Use(names) = krate.may else { continue };
            let mut names = names.split_whitespace();
            assert!(names.all(|name| find(name).is_some()), "{}", krate.name);
        }
    }
}
