//! The step `tidy` of `cargo xtask ci`: checks every file of the repository for problems that the
//! compiler does not find.

use std::path::Path;

use crate::outcome::{Outcome, no_problems};
use crate::{mutate, workspace};

/// Checks every file that git tracks or would add.
pub(crate) fn run() -> Outcome {
    let files = workspace::texts(is_ours)?;
    let mut found = mutate::problems(&mutate::all()?);
    for (name, text) in &files {
        found.extend(problems(name, text));
    }
    no_problems("untidy", &found)?;
    println!("{} files are tidy", files.len());
    Ok(())
}

/// Returns true if a file is written by people of this project, and is not data of a test or tool.
fn is_ours(name: &str) -> bool {
    let is_data = |folder: &str| DATA.contains(&folder);
    let path = Path::new(name);
    let is_lock = path.file_name().is_some_and(|name| name == "Cargo.lock");
    !is_lock && !path.iter().any(|part| part.to_str().is_some_and(is_data))
}

/// The problems of one file, each with its place.
fn problems(name: &str, text: &str) -> Vec<String> {
    let is_rust = name.ends_with(".rs");
    let mut found = Vec::new();
    if is_rust && !OPENINGS.iter().any(|opening| text.starts_with(opening)) {
        found.push(format!("{name}:1: a file must begin with a `//!` comment"));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let missing = "there is no newline at the end of the file";
        found.push(format!("{name}: {missing}"));
    }
    for (line, number) in text.lines().zip(1..) {
        let mut report = |what: String| found.push(format!("{name}:{number}: {what}"));
        if line.ends_with([' ', '\t', '\r']) {
            report("trailing white space".into());
        }
        if let Some(folder) = whole(MACHINE_FOLDERS).find(|folder| names_path(line, folder)) {
            report(format!("a path of one machine: {folder}…"));
        }
        if let Some(host) = whole(REGISTRY_HOSTS).find(|host| line.contains(host)) {
            report(format!("the host of a registry: {host}"));
        }
    }
    found
}

/// Returns true if `line` contains a path that begins with `folder`, and not one with it in the
/// middle.
fn names_path(line: &str, folder: &str) -> bool {
    let inside = |before: char| before.is_alphanumeric() || "._-}~*".contains(before);
    let mut places = line.match_indices(folder);
    places.any(|(at, _)| !line[..at].ends_with(inside))
}

/// The names of a list, without the bar that each of them has inside.
fn whole(list: &str) -> impl Iterator<Item = String> {
    list.split(' ').map(|name| name.replace('|', ""))
}

/// Folders with inputs and expected outputs of tests, which are kept byte for byte.
const DATA: &[&str] = &["cases", "corpus", "fixtures", "snapshots"];

/// The permitted beginnings of a Rust file: its documentation.
const OPENINGS: &[&str] = &["//! ", "#![doc = include_str!("];

/// Folders that exist on one machine only. In pieces, so that this file passes its own check.
const MACHINE_FOLDERS: &str = "/ho|me/ /ro|ot/ /tm|p/ /Use|rs/ /wo|rk/";

/// Registries are accessed with their clients, as the user has configured them.
const REGISTRY_HOSTS: &str = "\
    index.crat|es.io static.crat|es.io //crat|es.io \
    py|pi.org pythonhos|ted.org registry.np|mjs.org deb.deb|ian.org";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tidy_file_is_left_alone() {
        assert_eq!(
            problems("a.rs", "//! A file.\n\nfn f() {}\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            problems("src/lib.rs", "#![doc = include_str!(\"../README.md\")]\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            problems(
                "crates/sse/Cargo.toml",
                "[package]\nname = \"sluicegate-sse\"\n"
            ),
            Vec::<String>::new()
        );
        assert_eq!(
            problems("a.md", "see https://host.example/home/page\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn everything_untidy_is_reported_with_its_place() {
        let home = whole(MACHINE_FOLDERS).next().unwrap();
        let host = whole(REGISTRY_HOSTS).nth(3).unwrap();
        let text = format!("fn f() {{}} \n\tlet path = \"{home}me\";\n// https://{host}/simple");
        assert_eq!(
            problems("a.rs", &text),
            [
                "a.rs:1: a file must begin with a `//!` comment".to_owned(),
                "a.rs: there is no newline at the end of the file".to_owned(),
                "a.rs:1: trailing white space".to_owned(),
                format!("a.rs:2: a path of one machine: {home}…"),
                format!("a.rs:3: the host of a registry: {host}"),
            ]
        );
    }

    #[test]
    fn data_of_tests_is_not_looked_over() {
        assert!(is_ours("crates/sse/src/lib.rs") && is_ours(".ci/run"));
        assert!(
            !is_ours("fuzz/corpus/sse/a")
                && !is_ours("tests/dialects/cases/vllm/a.json")
                && !is_ours("crates/chat/tests/it/fixtures/a.json")
                && !is_ours("Cargo.lock")
        );
    }
}
