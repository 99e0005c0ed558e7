//! The Rust tests that exist, as cargo-nextest lists them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::outcome::{At as _, Outcome};
use crate::tools::NEXTEST;
use crate::{process, workspace};

/// A test program, as `cargo nextest list --message-format json` prints it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Program {
    /// Its name for nextest: `sluicegate-server::faults`.
    #[serde(rename = "binary-id")]
    pub(crate) id: String,
    binary_path: PathBuf,
    /// The folder of its package, in which it runs.
    cwd: PathBuf,
    /// The tests, by their paths within the program.
    testcases: BTreeMap<String, Test>,
}

#[derive(Debug, Deserialize)]
struct Test {
    ignored: bool,
}

impl Program {
    /// A command that runs the program as cargo would.
    pub(crate) fn command(&self) -> Command {
        self.entered(Command::new(&self.binary_path))
    }

    /// A command that runs the program as `runner` runs its arguments.
    pub(crate) fn run_by(&self, mut runner: Command) -> Command {
        runner.arg(&self.binary_path);
        self.entered(runner)
    }

    fn entered(&self, mut command: Command) -> Command {
        command.current_dir(&self.cwd);
        command.env("CARGO_MANIFEST_DIR", &self.cwd);
        command
    }

    /// Returns true if a test's path contains `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.testcases.keys().any(|path| path.contains(name))
    }

    /// Returns true if this program runs the test `name` of the source `file`.
    pub(crate) fn runs(&self, file: &str, name: &str) -> bool {
        let Some(modules) = self.modules(file) else {
            return false;
        };
        self.testcases.iter().any(|(path, test)| {
            let inner = path.strip_prefix(&modules);
            let between = inner.and_then(|inner| inner.strip_suffix(name));
            !test.ignored && between.is_some_and(|path| path.is_empty() || path.ends_with("::"))
        })
    }

    /// The beginning of the paths of the tests in a source file of this program: `a::b::` for
    /// `crates/NAME/src/a/b.rs`.
    fn modules(&self, file: &str) -> Option<String> {
        let (package, program) = self.id.split_once("::").unwrap_or((&self.id, "bin/"));
        let package = package.strip_prefix("sluicegate-")?;
        let folders = match program.starts_with("bin/") {
            true => [format!("crates/{package}/src"), format!("tests/{package}")],
            false => [
                format!("crates/{package}/tests/{program}"),
                format!("tests/{program}"),
            ],
        };
        let mut within = folders
            .iter()
            .filter_map(|folder| file.strip_prefix(folder));
        match within.next()?.strip_suffix(".rs")? {
            "" | "/lib" | "/main" => Some(String::new()),
            module => Some(module.strip_prefix('/')?.replace('/', "::") + "::"),
        }
    }
}

/// The program `id`.
pub(crate) fn find<'a>(programs: &'a [Program], id: &str) -> Outcome<&'a Program> {
    let program = programs.iter().find(|program| program.id == id);
    program.ok_or_else(|| format!("there is no test program {id}"))
}

/// Every test program of the workspace but xtask's, built if it is not yet.
pub(crate) fn programs() -> Outcome<Vec<Program>> {
    binaries_metadata()?;
    built()
}

/// The test programs whose places were written before.
pub(crate) fn built() -> Outcome<Vec<Program>> {
    let binaries = workspace::target()?.join(METADATA);
    // With the programs that nextest leaves out by default, which run beside it.
    let line = "list --ignore-default-filter --message-format json --binaries-metadata";
    let mut list = NEXTEST.command(line)?;
    parse(&process::output(list.arg(binaries))?)
}

/// Writes where the existing test programs are, so that nextest does not build them again: that
/// would replace the gateway by one with the features of the tests.
pub(crate) fn binaries_metadata() -> Outcome<PathBuf> {
    let line = "list --workspace --exclude xtask --tests --locked --list-type binaries-only \
                --message-format json --cargo-quiet";
    let mut list = NEXTEST.command(&[line, workspace::TEST_FEATURES].concat())?;
    let file = workspace::target()?.join(METADATA);
    fs::write(&file, process::output(&mut list)?).at(&file)?;
    Ok(file)
}

fn parse(json: &str) -> Outcome<Vec<Program>> {
    let list: List = serde_json::from_str(json).at("the list of cargo-nextest")?;
    Ok(list.rust_suites.into_values().collect())
}

/// The file in the target folder with the places of the test programs.
const METADATA: &str = "test-programs.json";

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct List {
    rust_suites: BTreeMap<String, Program>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(id: &str, path: &str, ignored: bool) -> Program {
        Program {
            id: id.to_owned(),
            binary_path: PathBuf::new(),
            cwd: PathBuf::new(),
            testcases: [(path.to_owned(), Test { ignored })].into(),
        }
    }

    #[test]
    fn a_test_is_known_by_its_file() {
        let unit = program("sluicegate-sse", "lines::tests::one", false);
        assert!(unit.runs("crates/sse/src/lines.rs", "one"));
        assert!(!unit.runs("crates/sse/src/line.rs", "one"));
        assert!(!unit.runs("crates/sse/src/lines.rs", "ne"));
        assert!(!unit.runs("crates/sse/src/lib.rs", "two"));
        assert!(!unit.runs("crates/wire/src/lines.rs", "one"));
        let nested = program(
            "sluicegate-server::upstreams",
            "faults::reading::s01_a",
            false,
        );
        assert!(nested.runs("tests/upstreams/faults/reading.rs", "s01_a"));
        assert!(!nested.runs("tests/faults/reading.rs", "s01_a"));
        let top = program("sluicegate-server::upstreams", "s01_a", false);
        assert!(top.runs("tests/upstreams/main.rs", "s01_a"));
        assert!(!top.runs("tests/upstreams/faults.rs", "s01_a"));
        let file = program("sluicegate-picture::memory", "s01_a", false);
        assert!(file.runs("crates/picture/tests/memory.rs", "s01_a"));
        assert!(!file.runs("crates/picture/tests/memory2.rs", "s01_a"));
        let bin = program("sluicegate-campaign::bin/campaign", "judge::s01_a", false);
        assert!(bin.runs("tests/campaign/judge.rs", "s01_a"));
    }

    #[test]
    fn an_ignored_test_is_not_run() {
        let ignored = program("sluicegate-server::upstreams", "s01_a", true);
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
        let programs = parse(json).unwrap();
        let [faults] = &programs[..] else {
            panic!("{programs:?}")
        };
        assert_eq!(faults.binary_path, PathBuf::from("/t/faults-1"));
        assert!(faults.has("j02") && faults.runs("tests/faults/json.rs", "j01_a"));
        assert!(!faults.runs("tests/faults/json.rs", "j02_b"));
    }
}
