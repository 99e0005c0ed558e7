//! The official SDKs against the gateway: the Python ones in `cargo xtask test`, the Node ones by
//! `cargo xtask clients`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateway::Gateway;
use crate::{Outcome, fetch_model, process, python, workspace};

/// Runs the Python SDKs against the binary of the dev profile, which must have been built.
pub(crate) fn python_sdks() -> Outcome {
    REQUIREMENTS.iter().try_for_each(|(requirements, pytest)| python_set(requirements, pytest))
}

/// Brings the model if it is absent, builds, and runs the Node SDKs; `args` go to `node --test`.
pub(crate) fn node_sdks(args: &[OsString]) -> Outcome {
    fetch_model::run()?;
    let packages = ["--package", "sluicegate-server", "--package", "sluicegate-simulator"];
    process::run(process::cargo("build").args(["--locked", "--bins"]).args(packages))?;
    let folder = installed()?;
    let program = workspace::program("debug")?;
    let gateway = Gateway::start(&program, Gateway::KEYS, &folder.join("gateway.log"))?;
    let mut test = npm(&folder);
    test.env(PROGRAM, program).env(SIMULATOR, workspace::simulator("debug")?);
    test.env("SLUICEGATE_URL", gateway.url()).envs(Gateway::KEYS).args(["--silent", "test", "--"]).args(args);
    process::run(&mut test)
}

/// One set of the Python SDKs in an environment of its own.
fn python_set(requirements: &str, pytest: &[&str]) -> Outcome {
    let folder = folder();
    let python = python::environment(requirements, &folder.join(requirements).with_extension("txt"))?;
    let mut command = Command::new(python);
    command.current_dir(folder).env(PROGRAM, workspace::program("debug")?);
    command.env(SIMULATOR, workspace::simulator("debug")?);
    process::run(command.args(["-m", "pytest", "-q"]).args(pytest))
}

/// A fresh copy of the Node tests with all that they need, so that nothing is written beside the sources.
fn installed() -> Outcome<PathBuf> {
    let folder = target()?.join(NODE);
    copy(&self::folder().join(NODE), &folder)
        .map_err(|error| format!("the Node tests cannot be copied to {}: {error}", folder.display()))?;
    println!("installing the Node SDKs in {}", folder.display());
    process::run(npm(&folder).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    Ok(folder)
}

/// Puts the files of a flat folder in the place of whatever is at `to`.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// npm in a folder; what it runs finds the folder's own Node first.
fn npm(folder: &Path) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.current_dir(folder);
    command
}

fn folder() -> PathBuf {
    workspace::root().join("tests").join("clients")
}

/// Where the SDKs are installed.
fn target() -> Outcome<PathBuf> {
    Ok(workspace::target()?.join("clients"))
}

/// The files that name the Python SDKs, their current majors and the ones before, with what pytest is told for each.
const REQUIREMENTS: [(&str, &[&str]); 2] = [
    ("requirements", &[]),
    // What the gateway makes of the values of a request does not depend on the major of the SDK.
    ("requirements-previous", &["--ignore=test_image_values.py"]),
];
/// The folder of the Node tests, here and in the target folder.
const NODE: &str = "node";
/// Tells the tests which binary to run.
const PROGRAM: &str = "SLUICEGATE_BIN";
/// The same of the model server that they have behind it.
const SIMULATOR: &str = "SLUICEGATE_SIMULATOR_BIN";
