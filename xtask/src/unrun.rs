//! Finds tests and examples that are never run: those of a target whose manifest disables them.
//!
//! `test = false` and `doctest = false` save a build each, and silently skip tests that are added later.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, Package, Target};

use crate::outcome::Outcome;
use crate::workspace;

/// The files with tests or examples that are never run.
pub(crate) fn problems(metadata: &Metadata) -> Outcome<Vec<String>> {
    let root = workspace::root();
    let files = workspace::files()?;
    let mut found = BTreeSet::new();
    for package in &metadata.packages {
        for target in package.targets.iter().filter(|target| target.is_lib() || target.is_bin()) {
            let sources = sources(package, target, &files)?;
            let mut report = |flag: &str, path: &Path| {
                let name = path.strip_prefix(&root).unwrap_or(path).display();
                found.insert(format!(
                    "{name}: there are tests or examples here, but {} has `{flag} = false`",
                    package.name
                ));
            };
            if !target.test {
                sources.iter().filter(|(_, text)| has_tests(text)).for_each(|(path, _)| report("test", path));
            }
            if target.is_lib() && !target.doctest {
                let readme = package.manifest_path.with_file_name("README.md").into_std_path_buf();
                let readme = fs::read_to_string(&readme).map(|text| (readme, text));
                let pages = sources.iter().chain(readme.as_ref());
                pages.filter(|(_, text)| has_examples(text)).for_each(|(path, _)| report("doctest", path));
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The files of a target: only its root if the rest of the folder belongs to another, whose tests are run.
fn sources(package: &Package, target: &Target, files: &[String]) -> Outcome<Vec<(PathBuf, String)>> {
    let root = target.src_path.as_std_path();
    let is_shared = package.targets.iter().any(|other| {
        (other.is_lib() || other.is_bin()) && other.test && other.src_path.parent() == target.src_path.parent()
    });
    let is_of =
        |path: &Path| path == root || !is_shared && root.parent().is_some_and(|folder| path.starts_with(folder));
    let rust = files.iter().filter(|name| name.ends_with(".rs")).map(|name| workspace::root().join(name));
    rust.filter(|path| is_of(path)).map(|path| Ok((path.clone(), workspace::read(path)?))).collect()
}

/// Returns true if a source has tests.
fn has_tests(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| TESTS.iter().any(|beginning| line.starts_with(beginning)))
}

/// Returns true if a source or a page of Markdown has examples that rustdoc runs.
fn has_examples(text: &str) -> bool {
    let markdown = text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!']).trim());
    let languages = markdown.filter_map(|line| line.strip_prefix("```"));
    // Every other fence is a closing one.
    languages.step_by(2).any(|language| language.is_empty() || EXAMPLES.iter().any(|word| language.starts_with(word)))
}

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
    fn a_target_that_is_silenced_is_told() {
        let mut metadata = workspace::metadata().unwrap();
        metadata.packages.retain(|package| package.name == "sluicegate-auth");
        let target = &mut metadata.packages[0].targets[0];
        (target.test, target.doctest) = (false, false);
        let found = problems(&metadata).unwrap().join("\n");
        for (file, flag) in [("src/ring.rs", "test"), ("src/key.rs", "doctest"), ("README.md", "doctest")] {
            let line = format!(
                "crates/auth/{file}: there are tests or examples here, but sluicegate-auth has `{flag} = false`"
            );
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
            has_examples("/// One.\n///\n/// ```\n/// f();\n/// ```\n") && has_examples("# A\n\n```rust\nf();\n```\n")
        );
        assert!(has_examples("//! ```text\n//! a\n//! ```\n//! ```no_run\n//! f();\n//! ```\n"));
        assert!(!has_examples("//! ```text\n//! a -> b\n//! ```\n"));
    }
}
