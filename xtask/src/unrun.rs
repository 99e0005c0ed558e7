//! Finds tests and examples that are never run: those of a target whose manifest disables them.
//!
//! `test = false` and `doctest = false` save a build each, and silently skip tests that are added
//! later.

use std::collections::BTreeSet;
use std::path::Path;

use cargo_metadata::{Metadata, Package, Target};

use crate::outcome::Outcome;
use crate::workspace;

/// The files with tests or examples that are never run.
pub(crate) fn problems(metadata: &Metadata) -> Outcome<Vec<String>> {
    let root = workspace::root();
    let files = workspace::texts(|name| name.ends_with(".rs") || name.ends_with("README.md"))?;
    let mut found = BTreeSet::new();
    for package in &metadata.packages {
        let readme = package
            .manifest_path
            .with_file_name("README.md")
            .into_std_path_buf();
        for target in package
            .targets
            .iter()
            .filter(|target| target.is_lib() || target.is_bin())
        {
            let mut report = |flag: &str, is_unrun: &dyn Fn(&Path, &str) -> bool| {
                for (name, _) in files
                    .iter()
                    .filter(|(name, text)| is_unrun(&root.join(name), text))
                {
                    let package = &package.name;
                    found.insert(format!(
                        "{name}: there are tests or examples here, but {package} has `{flag} = false`"
                    ));
                }
            };
            if !target.test {
                report("test", &|path: &Path, text: &str| {
                    is_source(path, package, target) && has_tests(text)
                });
            }
            if target.is_lib() && !target.doctest {
                let is_page = |path: &Path| is_source(path, package, target) || path == readme;
                report("doctest", &|path: &Path, text: &str| {
                    is_page(path) && has_examples(text)
                });
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Returns true for the files of a target: only its root if the rest of the folder belongs to
/// another, whose tests are run.
fn is_source(path: &Path, package: &Package, target: &Target) -> bool {
    let is_shared = package.targets.iter().any(|other| {
        (other.is_lib() || other.is_bin())
            && other.test
            && other.src_path.parent() == target.src_path.parent()
    });
    let is_inside = !is_shared
        && target
            .src_path
            .parent()
            .is_some_and(|folder| path.starts_with(folder));
    path.extension().is_some_and(|extension| extension == "rs")
        && (path == target.src_path || is_inside)
}

/// Returns true if a source has tests.
fn has_tests(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .any(|line| TESTS.iter().any(|beginning| line.starts_with(beginning)))
}

/// Returns true if a source or a page of Markdown has examples that rustdoc runs.
fn has_examples(text: &str) -> bool {
    let markdown = text
        .lines()
        .map(|line| line.trim_start().trim_start_matches(['/', '!']).trim());
    let languages = markdown.filter_map(|line| line.strip_prefix("```"));
    // Every other fence is a closing one.
    languages.step_by(2).any(|language| {
        language.is_empty() || EXAMPLES.iter().any(|word| language.starts_with(word))
    })
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
    fn a_target_without_tests_is_reported() {
        let mut metadata = workspace::metadata().unwrap();
        metadata
            .packages
            .retain(|package| package.name == "sluicegate-auth");
        let target = &mut metadata.packages[0].targets[0];
        (target.test, target.doctest) = (false, false);
        let found = problems(&metadata).unwrap().join("\n");
        for (file, flag) in [
            ("src/ring.rs", "test"),
            ("src/key.rs", "doctest"),
            ("README.md", "doctest"),
        ] {
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
            has_examples("/// One.\n///\n/// ```\n/// f();\n/// ```\n")
                && has_examples("# A\n\n```rust\nf();\n```\n")
        );
        assert!(has_examples(
            "//! ```text\n//! a\n//! ```\n//! ```no_run\n//! f();\n//! ```\n"
        ));
        assert!(!has_examples("//! ```text\n//! a -> b\n//! ```\n"));
    }
}
