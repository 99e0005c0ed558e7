//! The Rust tests that exist, as cargo-nextest lists them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cargo_metadata::{Metadata, Target};
use serde::Deserialize;

use crate::outcome::{At as _, Outcome};
use crate::tools::NEXTEST;
use crate::{process, workspace};

/// A test program.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its name for nextest: `sluicegate-server::faults`.
    pub(crate) id: String,
    path: PathBuf,
    /// The folder of its package, in which it runs.
    folder: PathBuf,
    /// Its root source file, from the root of the repository.
    root: String,
    tests: Vec<Test>,
}

/// A test, by its path within its program.
#[derive(Debug)]
struct Test {
    path: String,
    is_ignored: bool,
}

impl Program {
    /// A command that runs the program as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// Returns true if a test's path contains `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tests.iter().any(|test| test.path.contains(name))
    }

    /// Returns true if this program runs the test `name` of the source `file`: a file is a module
    /// of the folder with the root.
    pub(crate) fn runs(&self, file: &str, name: &str) -> bool {
        let folder = self.root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let Some(within) = file
            .strip_prefix(folder)
            .and_then(|file| file.strip_prefix('/'))
        else {
            return false;
        };
        let modules = match file == self.root {
            true => String::new(),
            false => format!("{}::", within.trim_end_matches(".rs").replace('/', "::")),
        };
        let is_it = |path: &str| {
            let inner = path.strip_prefix(&modules);
            let between = inner.and_then(|inner| inner.strip_suffix(name));
            between.is_some_and(|between| between.is_empty() || between.ends_with("::"))
        };
        self.tests
            .iter()
            .any(|test| !test.is_ignored && is_it(&test.path))
    }
}

/// Every test program of the workspace but xtask's, built if it is not yet.
pub(crate) fn programs() -> Outcome<Vec<Program>> {
    let binaries = binaries_metadata()?;
    let mut list = NEXTEST.command()?;
    list.args(["list", "--message-format", "json", "--binaries-metadata"]);
    let json = process::output(list.arg(binaries))?;
    parse(&json, &workspace::metadata()?)
}

/// Writes where the existing test programs are, so that nextest does not build them again: that
/// would replace the gateway by one with the features of the tests.
pub(crate) fn binaries_metadata() -> Outcome<PathBuf> {
    let mut list = NEXTEST.command()?;
    list.args(["list", "--workspace", "--exclude", "xtask", "--tests"]);
    list.args(["--locked", "--list-type", "binaries-only"]);
    list.args(["--message-format", "json", "--cargo-quiet"]);
    let folder = workspace::target()?.join("nextest");
    fs::create_dir_all(&folder).at(&folder)?;
    let file = folder.join("binaries.json");
    fs::write(&file, process::output(&mut list)?).at(&file)?;
    Ok(file)
}

fn parse(json: &str, metadata: &Metadata) -> Outcome<Vec<Program>> {
    let list: List = serde_json::from_str(json).at("the list of cargo-nextest")?;
    let suites = list.rust_suites.into_iter();
    suites
        .map(|(id, suite)| {
            let root = root(&suite, metadata)
                .ok_or_else(|| format!("there is no source of the test program {id}"))?;
            let test = |(path, case): (String, Case)| Test {
                path,
                is_ignored: case.ignored,
            };
            Ok(Program {
                id,
                path: suite.binary_path,
                folder: suite.cwd,
                root,
                tests: suite.testcases.into_iter().map(test).collect(),
            })
        })
        .collect()
}

/// The root source file of a test program, from the root of the repository.
fn root(suite: &Suite, metadata: &Metadata) -> Option<String> {
    let mut packages = metadata.packages.iter();
    let package = packages.find(|package| package.name == suite.package_name)?;
    let is_it = |target: &&Target| match &*suite.kind {
        "lib" => target.is_lib(),
        "bin" => target.is_bin() && target.name == suite.binary_name,
        _ => target.is_test() && target.name == suite.binary_name,
    };
    let path = &package.targets.iter().find(is_it)?.src_path;
    // The path of a target may contain `..`.
    let path = path.as_std_path().canonicalize().ok()?;
    let path = path.strip_prefix(workspace::root().canonicalize().ok()?);
    Some(path.ok()?.to_string_lossy().into_owned())
}

/// The output of `cargo nextest list --message-format json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct List {
    rust_suites: BTreeMap<String, Suite>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Suite {
    package_name: String,
    binary_name: String,
    kind: String,
    binary_path: PathBuf,
    cwd: PathBuf,
    testcases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    ignored: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(root: &str, path: &str, is_ignored: bool) -> Program {
        let path = path.to_owned();
        Program {
            id: String::new(),
            path: PathBuf::new(),
            folder: PathBuf::new(),
            root: root.to_owned(),
            tests: vec![Test { path, is_ignored }],
        }
    }

    #[test]
    fn a_test_is_known_by_its_file() {
        let unit = program("crates/sse/src/lib.rs", "lines::tests::one", false);
        assert!(unit.runs("crates/sse/src/lines.rs", "one"));
        assert!(!unit.runs("crates/sse/src/line.rs", "one"));
        assert!(!unit.runs("crates/sse/src/lines.rs", "ne"));
        assert!(!unit.runs("crates/sse/src/lib.rs", "two"));
        assert!(!unit.runs("crates/wire/src/lines.rs", "one"));
        let nested = program("tests/upstreams/main.rs", "faults::reading::s01_a", false);
        assert!(nested.runs("tests/upstreams/faults/reading.rs", "s01_a"));
        assert!(!nested.runs("tests/faults/reading.rs", "s01_a"));
        let top = program("tests/upstreams/main.rs", "s01_a", false);
        assert!(top.runs("tests/upstreams/main.rs", "s01_a"));
        assert!(!top.runs("tests/upstreams/faults.rs", "s01_a"));
    }

    #[test]
    fn an_ignored_test_is_not_run() {
        let ignored = program("tests/upstreams/main.rs", "s01_a", true);
        assert!(!ignored.runs("tests/upstreams/main.rs", "s01_a"));
    }

    #[test]
    fn the_list_of_nextest_is_read() {
        let json = r#"{"rust-build-meta":{},"test-count":2,"rust-suites":{"sluicegate-server::faults":{
            "package-name":"sluicegate-server","binary-id":"sluicegate-server::faults","binary-name":"faults",
            "package-id":"a","kind":"test","binary-path":"/t/faults-1","build-platform":"target",
            "cwd":"/w/crates/server","status":"listed","testcases":{
                "json::j01_a":{"kind":"test","ignored":false,"filter-match":{"status":"matches"}},
                "json::j02_b":{"kind":"test","ignored":true,"filter-match":{"status":"mismatch","reason":"ignored"}}}}}}"#;
        let programs = parse(json, &workspace::metadata().unwrap()).unwrap();
        let [faults] = &programs[..] else {
            panic!("{programs:?}")
        };
        assert_eq!(faults.root, "tests/faults/main.rs");
        assert_eq!(faults.path, PathBuf::from("/t/faults-1"));
        assert!(faults.has("j02") && faults.runs("tests/faults/json.rs", "j01_a"));
        assert!(!faults.runs("tests/faults/json.rs", "j02_b"));
    }
}
