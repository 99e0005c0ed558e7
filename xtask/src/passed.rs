//! Which tests passed in the last run of `cargo xtask test`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use cargo_metadata::Message;

use crate::{Outcome, process, workspace};

/// A test that passed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Passed {
    /// The file with which its binary's sources begin, from the root of the repository.
    root: String,
    /// Its path within the binary.
    path: String,
}

impl Passed {
    pub(crate) fn new(root: &str, path: &str) -> Self {
        Self { root: root.to_owned(), path: path.to_owned() }
    }

    /// Whether this is the test `name` of the source `file`: a file is a module of the folder where its root lies.
    pub(crate) fn is(&self, file: &str, name: &str) -> bool {
        let folder = self.root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let Some(file_within) = file.strip_prefix(folder).and_then(|file| file.strip_prefix('/')) else { return false };
        let modules = match file == self.root {
            true => String::new(),
            false => format!("{}::", file_within.trim_end_matches(".rs").replace('/', "::")),
        };
        let inner = self.path.strip_prefix(&modules).and_then(|path| path.strip_suffix(name));
        inner.is_some_and(|between| between.is_empty() || between.ends_with("::"))
    }
}

/// The tests of the last run.
///
/// # Errors
/// When there was none.
pub(crate) fn last() -> Outcome<BTreeSet<Passed>> {
    let path = file()?;
    let text = fs::read_to_string(&path).map_err(|_| "no tests were run yet: run `cargo xtask test`".to_owned())?;
    Ok(text.lines().filter_map(|line| line.split_once(' ')).map(|(root, path)| Passed::new(root, path)).collect())
}

/// Builds everything that `cargo test` runs, and the binaries beside it, and returns which root file each test binary
/// has.
pub(crate) fn build() -> Outcome<Roots> {
    let mut build = process::cargo("build");
    build.args(["--workspace", "--locked", "--bins", "--tests", "--message-format", "json-render-diagnostics"]);
    roots(&process::output(&mut build)?)
}

/// Runs `cargo test`, its output going where ours goes, and keeps which tests passed.
pub(crate) fn run(command: Command, roots: &Roots) -> Outcome {
    let shown = process::shown(&command);
    let (status, passed) = listen(command, roots, io::stdout())?;
    keep(&passed)?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` ended with {status}")) }
}

/// Runs a command to its end, its output going to `out`, and hears which tests passed.
fn listen(mut command: Command, roots: &Roots, mut out: impl Write) -> Outcome<(ExitStatus, BTreeSet<Passed>)> {
    let told = |error: io::Error| format!("the output of `cargo test` cannot be passed on: {error}");
    // One pipe for both, since the tests of a binary stand between the lines of cargo.
    let (output, input) = io::pipe().map_err(told)?;
    let child = command.stdout(input.try_clone().map_err(told)?).stderr(input).spawn();
    let mut child = child.map_err(|error| process::not_started(&command, &error))?;
    // It holds the other end of the pipe too.
    drop(command);
    let mut listener = Listener::new(roots);
    for line in BufReader::new(output).split(b'\n') {
        let mut line = line.map_err(told)?;
        listener.take(&String::from_utf8_lossy(&line));
        line.push(b'\n');
        out.write_all(&line).map_err(told)?;
    }
    Ok((child.wait().map_err(told)?, listener.passed))
}

/// The root file of each test binary, by the binary's name with its hash.
pub(crate) type Roots = BTreeMap<String, String>;

/// What cargo says of its build.
fn roots(messages: &str) -> Outcome<Roots> {
    let mut roots = Roots::new();
    for message in Message::parse_stream(messages.as_bytes()) {
        let message = message.map_err(|error| format!("what cargo says of its build cannot be read: {error}"))?;
        let Message::CompilerArtifact(artifact) = message else { continue };
        let Some(binary) = artifact.executable.as_deref().filter(|_| artifact.profile.test) else { continue };
        let root = within_workspace(artifact.target.src_path.as_std_path())?;
        roots.extend(binary.file_name().map(|name| (name.to_owned(), root)));
    }
    Ok(roots)
}

/// A path from the root of the repository; that of a target may go up and down again.
fn within_workspace(path: &Path) -> Outcome<String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    let (root, path) = (real(&workspace::root())?, real(path)?);
    Ok(path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/"))
}

fn keep(passed: &BTreeSet<Passed>) -> Outcome {
    let text: String = passed.iter().map(|Passed { root, path }| format!("{root} {path}\n")).collect();
    let path = file()?;
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn file() -> Outcome<PathBuf> {
    Ok(workspace::target()?.join("passed-tests.txt"))
}

/// Listens to `cargo test`.
struct Listener<'a> {
    roots: &'a Roots,
    /// The root of the binary that is running; none for examples in documentation.
    now: Option<&'a str>,
    passed: BTreeSet<Passed>,
}

impl<'a> Listener<'a> {
    fn new(roots: &'a Roots) -> Self {
        Self { roots, now: None, passed: BTreeSet::new() }
    }

    fn take(&mut self, line: &str) {
        let line = line.trim();
        if let Some(running) = line.strip_prefix("Running ") {
            let binary = running.strip_suffix(')').and_then(|running| running.rsplit(['(', '/', '\\']).next());
            self.now = binary.and_then(|binary| self.roots.get(binary)).map(String::as_str);
        } else if line.starts_with("Doc-tests ") {
            self.now = None;
        } else if let Some(test) = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... ok")) {
            let test = test.strip_suffix(" - should panic").unwrap_or(test);
            self.passed.extend(self.now.map(|root| Passed::new(root, test)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_heard_of_with_their_roots() {
        let roots = [("it-1", "crates/sse/tests/it/main.rs"), ("sluicegate_sse-2", "crates/sse/src/lib.rs")];
        let roots = roots.map(|(binary, root)| (binary.to_owned(), root.to_owned())).into();
        let mut listener = Listener::new(&roots);
        let output = "\
   Compiling sluicegate-sse v0.1.0
     Running unittests src/lib.rs (target/debug/deps/sluicegate_sse-2)

running 3 tests
test lines::tests::one ... ok
test lines::tests::two - should panic ... ok
test lines::tests::three ... FAILED
test lines::tests::four ... ignored, slow
     Running tests/it/main.rs (target/debug/deps/it-1)
test five ... ok
     Running tests/it/main.rs (target/debug/deps/it-unknown)
test six ... ok
   Doc-tests sse
test crates/sse/src/lib.rs - Decoder (line 3) ... ok
";
        output.lines().for_each(|line| listener.take(line));
        let lib = |path| Passed::new("crates/sse/src/lib.rs", path);
        let expected =
            [lib("lines::tests::one"), lib("lines::tests::two"), Passed::new("crates/sse/tests/it/main.rs", "five")];
        assert_eq!(listener.passed, expected.into());
    }

    #[test]
    fn what_a_command_says_is_passed_on_and_heard_in_its_order() {
        let roots = [("it-1".to_owned(), "tests/it/main.rs".to_owned())].into();
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'Running tests/it/main.rs (it-1)' >&2; echo 'test a::b ... ok'; exit 3"]);
        let mut out = Vec::new();
        let (status, passed) = listen(command, &roots, &mut out).unwrap();
        assert_eq!((status.code(), passed), (Some(3), [Passed::new("tests/it/main.rs", "a::b")].into()));
        assert_eq!(out, b"Running tests/it/main.rs (it-1)\ntest a::b ... ok\n");
    }

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

    #[test]
    fn what_cargo_built_has_roots() {
        let root = workspace::root().join("crates/server/../../tests/faults/main.rs");
        let artifact = |test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///a#sluicegate-sse@0.1.0","manifest_path":"/a/Cargo.toml","target":{{"kind":["lib"],"crate_types":["lib"],"name":"sse","src_path":{root:?},"edition":"2024","doc":true,"doctest":true,"test":true}},"profile":{{"opt_level":"0","debuginfo":2,"debug_assertions":true,"overflow_checks":true,"test":{test}}},"features":[],"filenames":[],"executable":"/a/target/debug/deps/sse-{test}","fresh":true}}"#
            )
        };
        let messages = format!("{}\n{}\n", artifact(true), artifact(false));
        assert_eq!(roots(&messages), Ok([("sse-true".to_owned(), "tests/faults/main.rs".to_owned())].into()));
    }
}
