//! Builds the test programs, and the gateway that they run.

use std::path::{Path, PathBuf};

use cargo_metadata::Message;

use crate::outcome::{At as _, Outcome};
use crate::{needs, process, workspace};

/// A test program that cargo has built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its root source file, from the root of the repository.
    pub(crate) root: String,
    /// The folder of its package, in which it runs.
    pub(crate) folder: PathBuf,
    pub(crate) executable: PathBuf,
}

/// Builds every test program of the workspace and of xtask.
///
/// xtask has a separate build, so that its dependencies enable no feature for the tests of the
/// product.
pub(crate) fn build() -> Outcome<Vec<Program>> {
    needs::compiler()?;
    let mut programs = built(&["--workspace", "--exclude", "xtask", "--bins", "--tests"])?;
    programs.extend(built(&["--package", "xtask", "--tests"])?);
    programs.sort_by(|one, other| one.root.cmp(&other.root));
    Ok(programs)
}

/// Builds the gateway with its release features.
///
/// The tests run it from the target folder, where the build of the tests has left one with the
/// features that tests enable.
pub(crate) fn product() -> Outcome {
    needs::compiler()?;
    process::run(workspace::cargo("build").args([
        "--locked",
        "--package",
        "sluicegate-server",
        "--bins",
    ]))
}

fn built(packages: &[&str]) -> Outcome<Vec<Program>> {
    let mut build = workspace::cargo("build");
    build
        .args(["--locked", "--message-format", "json-render-diagnostics"])
        .args(packages);
    parse(&process::output(&mut build)?)
}

/// The test programs in the messages of a build.
fn parse(messages: &str) -> Outcome<Vec<Program>> {
    let mut programs = Vec::new();
    for message in Message::parse_stream(messages.as_bytes()) {
        let message =
            message.map_err(|error| format!("a message of cargo cannot be read: {error}"))?;
        let Message::CompilerArtifact(artifact) = message else {
            continue;
        };
        let Some(executable) = artifact.executable.filter(|_| artifact.profile.test) else {
            continue;
        };
        let folder = artifact
            .manifest_path
            .parent()
            .map(PathBuf::from)
            .unwrap_or_default();
        let root = within_workspace(artifact.target.src_path.as_std_path())?;
        programs.push(Program {
            root,
            folder,
            executable: executable.into(),
        });
    }
    Ok(programs)
}

/// A path relative to the root of the repository; that of a target may contain `..`.
fn within_workspace(path: &Path) -> Outcome<String> {
    let real = |path: &Path| path.canonicalize().at(path);
    let root = real(&workspace::root())?;
    let path = real(path)?;
    Ok(path
        .strip_prefix(&root)
        .unwrap_or(&path)
        .to_string_lossy()
        .into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_are_found_in_the_messages_of_a_build() {
        let source = workspace::root().join("crates/server/../../tests/faults/main.rs");
        let artifact = |test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///a#sluicegate-server@0.1.0","manifest_path":"/a/Cargo.toml","target":{{"kind":["test"],"crate_types":["bin"],"name":"faults","src_path":{source:?},"edition":"2024","doc":true,"doctest":true,"test":true}},"profile":{{"opt_level":"0","debuginfo":2,"debug_assertions":true,"overflow_checks":true,"test":{test}}},"features":[],"filenames":[],"executable":"/a/target/debug/deps/faults-{test}","fresh":true}}"#
            )
        };
        let messages = format!("{}\n{}\n", artifact(true), artifact(false));
        let expected = Program {
            root: "tests/faults/main.rs".to_owned(),
            folder: "/a".into(),
            executable: "/a/target/debug/deps/faults-true".into(),
        };
        assert_eq!(parse(&messages), Ok(vec![expected]));
    }
}
