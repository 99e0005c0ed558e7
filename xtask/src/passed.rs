//! The tests that passed in the last complete run of `cargo xtask test`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::outcome::{At as _, Outcome};
use crate::workspace;

/// A test that passed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Passed {
    /// The root source file of its binary, from the root of the repository.
    root: String,
    /// Its path within the binary.
    path: String,
}

impl Passed {
    pub(crate) fn new(root: &str, path: &str) -> Self {
        Self {
            root: root.to_owned(),
            path: path.to_owned(),
        }
    }

    /// Returns true if this is the test `name` of the source `file`: a file is a module of the
    /// folder with its root.
    pub(crate) fn is(&self, file: &str, name: &str) -> bool {
        let folder = self.root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let Some(file_within) = file
            .strip_prefix(folder)
            .and_then(|file| file.strip_prefix('/'))
        else {
            return false;
        };
        let modules = match file == self.root {
            true => String::new(),
            false => format!(
                "{}::",
                file_within.trim_end_matches(".rs").replace('/', "::")
            ),
        };
        let inner = self
            .path
            .strip_prefix(&modules)
            .and_then(|path| path.strip_suffix(name));
        inner.is_some_and(|between| between.is_empty() || between.ends_with("::"))
    }
}

/// The tests of the last run; an error if there was none.
pub(crate) fn last() -> Outcome<BTreeSet<Passed>> {
    let text = fs::read_to_string(file()?)
        .map_err(|_| "no tests were run yet: run `cargo xtask test`".to_owned())?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(root, path)| Passed::new(root, path))
        .collect())
}

/// Saves the tests that passed in a complete run.
pub(crate) fn keep(passed: &BTreeSet<Passed>) -> Outcome {
    let text: String = passed
        .iter()
        .map(|Passed { root, path }| format!("{root} {path}\n"))
        .collect();
    let path = file()?;
    fs::write(&path, text).at(&path)
}

fn file() -> Outcome<PathBuf> {
    Ok(workspace::target()?.join("passed-tests.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_known_by_its_file() {
        let unit = Passed::new("crates/sse/src/lib.rs", "lines::tests::one");
        assert!(unit.is("crates/sse/src/lines.rs", "one"));
        assert!(!unit.is("crates/sse/src/line.rs", "one"));
        assert!(!unit.is("crates/sse/src/lines.rs", "ne"));
        assert!(!unit.is("crates/sse/src/lib.rs", "two"));
        assert!(!unit.is("crates/wire/src/lines.rs", "one"));
        let nested = Passed::new("tests/upstreams/main.rs", "faults::reading::s01_a");
        assert!(nested.is("tests/upstreams/faults/reading.rs", "s01_a"));
        assert!(!nested.is("tests/faults/reading.rs", "s01_a"));
        let top = Passed::new("tests/upstreams/main.rs", "s01_a");
        assert!(top.is("tests/upstreams/main.rs", "s01_a"));
        assert!(!top.is("tests/upstreams/faults.rs", "s01_a"));
    }
}
