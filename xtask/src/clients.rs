//! `cargo xtask clients`: tests the gateway with the official SDKs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{process, python, seed, suite, workspace};

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
    suite::ready()?;
    match set {
        Set::Python => python_set(CURRENT, &[], args),
        // The output of the embedded engines does not depend on the SDK.
        Set::PythonPrevious => python_set(PREVIOUS, &["-m", "not long and not embedded"], args),
        Set::Node => node_set(NODE, args),
    }
}

/// The short tests of the current Python SDKs, with the existing simulator.
pub(crate) fn python_current() -> Outcome {
    suite::product()?;
    python_set(CURRENT, &[], &[])
}

/// All tests of both majors.
pub(crate) fn python_all() -> Outcome {
    suite::ready()?;
    python_set(CURRENT, &["-m", ""], &[])?;
    python_set(PREVIOUS, &["-m", ""], &[])
}

/// All tests of the Node SDKs.
pub(crate) fn node() -> Outcome {
    suite::ready()?;
    node_set(NODE, &[])
}

/// LangChain's standard tests, and the checks of llm-comply.
pub(crate) fn langchain() -> Outcome {
    suite::product()?;
    python_set("langchain/requirements", &[], &[])
}

/// Runs one set of Python packages in a separate environment, with pytest's arguments `selected`
/// and `args`.
fn python_set(set: &str, selected: &[&str], args: &[OsString]) -> Outcome {
    let list = workspace::root()
        .join("tests")
        .join(set)
        .with_extension("txt");
    let mut tests = Command::new(python::environment(set, &list)?);
    tests.current_dir(list.with_file_name(""));
    tests.args(["-m", "pytest", "-n", "2"]);
    process::echoed(with_programs(tests.args(selected).args(args))?)
}

/// Runs the tests of the console in Chromium. Without Chromium they are left out, except in CI.
pub(crate) fn console() -> Outcome {
    if !Path::new("/usr/bin/chromium").exists() && std::env::var_os("CI").is_none() {
        println!("left out: the console, because there is no /usr/bin/chromium");
        return Ok(());
    }
    suite::product()?;
    node_set("console", &[])
}

/// Runs the tests of a folder with Node; `args` go to `node --test`. They run in a copy, so that
/// nothing is written beside the sources.
fn node_set(name: &str, args: &[OsString]) -> Outcome {
    let folder = workspace::target()?.join(name);
    workspace::remove(&folder)?;
    fs::create_dir_all(&folder).at(&folder)?;
    let sources = workspace::root().join("tests").join(name).join(".");
    process::run(Command::new("cp").arg("-R").args([&sources, &folder]))?;
    println!("installing the packages of {name} in {}", folder.display());
    let mut install = Command::new("npm");
    install.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    process::run(install.current_dir(&folder))?;
    // npm puts the folder's Node first.
    let mut tests = Command::new("npm");
    tests.args(["--silent", "test", "--"]).args(args);
    process::run(with_programs(tests.current_dir(&folder))?)
}

/// Passes the seed to a test runner, and the paths of the gateway and of the simulator.
pub(crate) fn with_programs(command: &mut Command) -> Outcome<&mut Command> {
    seed::pass(seed::current()?, command);
    command.env("SLUICEGATE_BIN", workspace::binary("sluicegate")?);
    let simulator = workspace::binary("sluicegate-simulator")?;
    Ok(command.env("SLUICEGATE_SIMULATOR_BIN", simulator))
}

/// The current majors of the Python SDKs: the file with their packages, without its extension, and
/// their environment.
const CURRENT: &str = "clients/requirements";
/// The folder of the Node SDKs.
const NODE: &str = "clients/node";
/// The majors before those.
const PREVIOUS: &str = "clients/requirements-previous";
