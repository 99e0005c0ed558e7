//! `cargo xtask deps`: checks the workspace against the layer table, and its manifests and lock
//! files against the rules.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, Metadata, Package};

use crate::layers::{self, LAYERS, LayerCrate};
use crate::outcome::{At as _, Outcome, no_problems};
use crate::{features, imports, lints, lockfile, process, unrun, workspace};

/// Reports every dependency that the table or the rules do not allow.
pub(crate) fn run() -> Outcome {
    let metadata = workspace::metadata()?;
    let mut found = sideways(&metadata);
    found.extend(impure(&metadata)?);
    found.extend(heavy()?);
    found.extend(lints::problems(&metadata)?);
    found.extend(unrun::problems(&metadata)?);
    found.extend(features::problems()?);
    found.extend(imports::problems(&metadata)?);
    for name in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let problems = lockfile::problems(&workspace::read(name)?).at(name)?;
        found.extend(problems.iter().map(|problem| format!("{name}: {problem}")));
    }
    no_problems("dependencies", &found)?;
    println!("dependencies match the layer table");
    Ok(())
}

/// Declared dependencies that the table does not allow, and crates that it does not contain.
fn sideways(metadata: &Metadata) -> Vec<String> {
    let mut found = Vec::new();
    for package in &metadata.packages {
        let Some(folder) = folder(package) else {
            continue;
        };
        let Some(krate) = layers::find(folder) else {
            found.push(format!(
                "crates/{folder} is missing from the layer table (xtask/src/layers.rs)"
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let other = dependency
                .path
                .as_ref()
                .and_then(|path| layers::find(path.file_name()?));
            let Some(other) = other else { continue };
            let in_tests = dependency.kind == DependencyKind::Development;
            if !krate.may_use(other, in_tests) {
                let tests = if in_tests { "the tests of " } else { "" };
                found.push(format!(
                    "{tests}{} (row {}) may not depend on {} (row {})",
                    krate.name, krate.row, other.name, other.row
                ));
            }
        }
    }
    found
}

/// Pure crates that depend on a runtime or a socket, directly or indirectly.
fn impure(metadata: &Metadata) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for krate in present(metadata).filter(|krate| krate.is_pure()) {
        let package = format!("sluicegate-{}", krate.name);
        // One package at a time: the others would add their features.
        let reached = reached(&["--package", &package])?;
        for name in WITH_IO.iter().filter(|name| reached.contains(**name)) {
            found.push(format!(
                "{} must be free of I/O, but depends on {name}: `cargo tree -p {package} -e normal -i {name}`",
                krate.name
            ));
        }
    }
    Ok(found)
}

/// Engines that the fuzz targets depend on: the targets must stay quick to build.
fn heavy() -> Outcome<Vec<String>> {
    let reached = reached(&["--manifest-path", "fuzz/Cargo.toml"])?;
    let problem =
        |name| format!("fuzz depends on {name}: its targets may use the light crates only");
    Ok(ENGINES
        .iter()
        .filter(|name| reached.contains(**name))
        .map(problem)
        .collect())
}

/// The names of all packages in the dependency trees that `args` select.
fn reached(args: &[&str]) -> Outcome<BTreeSet<String>> {
    let mut tree = workspace::cargo("tree");
    tree.args([
        "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}",
    ])
    .args(args);
    let packages = process::output(&mut tree)?;
    Ok(packages
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect())
}

/// The packages that are published separately.
pub(crate) fn published() -> Outcome<Vec<String>> {
    let metadata = workspace::metadata()?;
    let crates = present(&metadata).filter(|krate| krate.builds_alone());
    Ok(crates
        .map(|krate| format!("sluicegate-{}", krate.name))
        .collect())
}

/// The crates of the table that are in the workspace.
fn present(metadata: &Metadata) -> impl Iterator<Item = &'static LayerCrate> {
    LAYERS.iter().filter(|krate| {
        metadata
            .packages
            .iter()
            .any(|package| folder(package) == Some(krate.name))
    })
}

/// The folder of a package inside `crates/`; `None` for other packages.
fn folder(package: &Package) -> Option<&str> {
    let folder = package.manifest_path.parent()?;
    (folder.parent()?.file_name()? == "crates").then_some(folder.file_name()?)
}

/// The engines.
const ENGINES: &[&str] = &["sluicegate-image-engine", "sluicegate-text-engine"];

/// Packages that no pure crate may depend on.
const WITH_IO: &[&str] = &["hyper", "mio", "socket2", "tokio"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_keeps_to_the_table() {
        assert_eq!(
            sideways(&workspace::metadata().unwrap()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_dependency_within_a_row_and_an_unknown_crate_are_reported() {
        let mut metadata = workspace::metadata().unwrap();
        let chat = metadata
            .packages
            .iter_mut()
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
}
