//! `cargo xtask clients`: tests the gateway with the official SDKs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{fetch_model, process, python, seed, suite, workspace};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The SDKs to run
    #[arg(value_enum)]
    set: Set,
    /// Arguments of pytest or `node --test`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// A set of SDKs.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Set {
    Python,
    PythonPrevious,
    Node,
}

/// Builds the gateway and runs a set of SDKs.
pub(crate) fn run(Args { set, args }: &Args) -> Outcome {
    match set {
        Set::Python => ready().and_then(|()| python_set(CURRENT, &[], args)),
        Set::PythonPrevious => python_previous(args),
        Set::Node => node(args),
    }
}

/// The short tests of the current Python SDKs, with the existing simulator.
pub(crate) fn python_current() -> Outcome {
    suite::product()?;
    python_set(CURRENT, &[], &[])
}

/// The short tests of the previous majors; `args` go to pytest.
fn python_previous(args: &[OsString]) -> Outcome {
    ready()?;
    // The output of the embedded engines does not depend on the SDK.
    python_set(PREVIOUS, &["-m", "not long and not embedded"], args)
}

/// All tests of both majors.
pub(crate) fn python_all() -> Outcome {
    ready()?;
    [CURRENT, PREVIOUS]
        .into_iter()
        .try_for_each(|set| python_set(set, &["-m", ""], &[]))
}

/// Downloads the model if it is absent, and builds the gateway and the simulator.
fn ready() -> Outcome {
    fetch_model::run()?;
    suite::binaries()
}

/// Runs one set of the Python SDKs in a separate environment, with pytest's arguments `selected`
/// and `args`.
fn python_set(set: &str, selected: &[&str], args: &[OsString]) -> Outcome {
    let folder = workspace::root().join("tests/clients");
    let python = python::environment(set, &folder.join(set).with_extension("txt"))?;
    let mut tests = Command::new(python);
    tests.current_dir(folder).args(["-m", "pytest", "-n", "2"]);
    process::echoed(with_programs(tests.args(selected).args(args))?)
}

/// Runs all tests of the Node SDKs; `args` go to `node --test`. They run in a copy, so that nothing
/// is written beside the sources.
pub(crate) fn node(args: &[OsString]) -> Outcome {
    ready()?;
    let folder = workspace::target()?.join("clients/node");
    copy(&workspace::root().join("tests/clients/node"), &folder).at(&folder)?;
    println!("installing the Node SDKs in {}", folder.display());
    let npm = |args: &[&str]| {
        let mut npm = Command::new("npm");
        npm.current_dir(&folder).args(args);
        npm
    };
    process::run(&mut npm(&[
        "ci",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]))?;
    // npm puts the folder's Node first.
    process::run(with_programs(npm(&["--silent", "test", "--"]).args(args))?)
}

/// Passes the seed to a test runner, and the paths of the gateway and of the simulator.
pub(crate) fn with_programs(command: &mut Command) -> Outcome<&mut Command> {
    seed::pass(seed::current()?, command);
    for (variable, program) in PROGRAMS {
        command.env(variable, workspace::binary(program)?);
    }
    Ok(command)
}

/// Copies the files of a flat folder to `to`, replacing what is there.
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

/// The programs, by the variables that tests read their paths from.
const PROGRAMS: [(&str, &str); 2] = [
    ("SLUICEGATE_BIN", "sluicegate"),
    ("SLUICEGATE_SIMULATOR_BIN", "sluicegate-simulator"),
];
/// The current majors of the Python SDKs: the file with their packages, without its extension, and
/// their environment.
const CURRENT: &str = "requirements";
/// The majors before those.
const PREVIOUS: &str = "requirements-previous";
