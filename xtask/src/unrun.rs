//! Finds tests and examples that are never run because the manifest of their target disables them.
//!
//! `test = false` and `doctest = false` save a build each, and silently skip tests that are added
//! later.

use std::ffi::OsStr;
use std::path::Path;

use cargo_metadata::{Metadata, Target};

use crate::outcome::Outcome;
use crate::workspace;

/// The files with tests or examples that are never run, each in a sentence.
pub(crate) fn problems(metadata: &Metadata) -> Outcome<Vec<String>> {
    let files = workspace::texts(|name| name.ends_with(".rs") || name.ends_with("README.md"))?;
    let mut found = Vec::new();
    for package in &metadata.packages {
        let targets = package.targets.iter();
        for target in targets.filter(|target| target.is_lib() || target.is_bin()) {
            let own = &target.name;
            for (name, text) in &files {
                let path = workspace::root().join(name);
                let is_source = is_source(&path, target);
                let is_page = path == package.manifest_path.with_file_name("README.md");
                if !target.test && is_source && has_tests(text) {
                    found.push(format!("{name} has tests, but {own} {NOT_RUN}"));
                }
                let is_unread = target.is_lib() && !target.doctest;
                if is_unread && (is_source || is_page) && has_examples(text) {
                    found.push(format!("{name} has examples, but {own} {NOT_RUN}"));
                }
            }
        }
    }
    Ok(found)
}

/// Returns true for the files of a target: its root and the modules below it, which belong to the
/// library if a program shares its folder.
fn is_source(path: &Path, target: &Target) -> bool {
    let root = target.src_path.as_std_path();
    let folder = root.parent().unwrap_or(root);
    let folder = match root.file_name().and_then(OsStr::to_str) {
        Some("lib.rs") => folder.to_owned(),
        Some("main.rs") if !folder.join("lib.rs").exists() => folder.to_owned(),
        Some("main.rs") => return path == root,
        _ => root.with_extension(""),
    };
    let is_other = path.starts_with(folder.join("bin")) || path == folder.join("main.rs");
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    path == root || is_rust && path.starts_with(&folder) && !is_other
}

/// Returns true if a source has tests.
fn has_tests(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| TESTS.iter().any(|test| line.starts_with(test)))
}

/// Returns true if a source or a page of Markdown has examples that rustdoc runs.
fn has_examples(text: &str) -> bool {
    let is_comment = |letter: char| letter.is_whitespace() || "/!".contains(letter);
    let markdown = text.lines().map(|line| line.trim_start_matches(is_comment));
    let languages = markdown.filter_map(|line| line.trim_end().strip_prefix("```"));
    // Every other fence is a closing one.
    let is_run = |word: &str| word.is_empty() || EXAMPLES.iter().any(|it| word.starts_with(it));
    languages.step_by(2).any(is_run)
}

/// The rest of a sentence about a target.
const NOT_RUN: &str = "does not run them: see `test` and `doctest` in its manifest";
/// The beginnings of lines with a test, or with a module of tests.
const TESTS: [&str; 4] = ["#[test]", "#[tokio::test", "#[cfg(test)]", "proptest!"];
/// The attributes with which rustdoc runs or compiles a block.
const EXAMPLES: [&str; 4] = ["rust", "no_run", "should_panic", "compile_fail"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_in_this_workspace_is_run() {
        assert_eq!(problems(&workspace::metadata().unwrap()), Ok(Vec::new()));
    }

    #[test]
    fn a_target_without_tests_is_reported() {
        let mut metadata = workspace::metadata().unwrap();
        metadata
            .packages
            .retain(|package| package.name == "sluicegate-auth");
        let target = &mut metadata.packages[0].targets[0];
        (target.test, target.doctest) = (false, false);
        let found = problems(&metadata).unwrap().join("\n");
        for (file, kind) in [
            ("src/ring.rs", "tests"),
            ("src/key.rs", "examples"),
            ("README.md", "examples"),
        ] {
            let line = format!("crates/auth/{file} has {kind}, but sluicegate_auth {NOT_RUN}");
            assert!(found.contains(&line), "{line} in\n{found}");
        }
    }

    #[test]
    fn tests_and_examples_are_seen() {
        assert!(
            has_tests("fn f() {}\n\n#[cfg(test)]\nmod tests {\n")
                && has_tests("    #[tokio::test(start_paused = true)]\n")
        );
        assert!(!has_tests("/// As `#[test]` does.\nfn f() {}\n"));
        assert!(
            has_examples("/// One.\n///\n/// ```\n/// f();\n/// ```\n")
                && has_examples("# A\n\n```rust\nf();\n```\n")
        );
        assert!(has_examples(
            "//! ```text\n//! a\n//! ```\n//! ```no_run\n//! f();\n//! ```\n"
        ));
        assert!(!has_examples("//! ```text\n//! a -> b\n//! ```\n"));
    }
}
