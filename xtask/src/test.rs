//! `cargo xtask test`: every test, from a bare machine.

use std::ffi::OsString;
use std::process::Command;

use crate::{Outcome, fetch_model, process, workspace};

/// Brings the model if it is absent and runs the tests; `args` go to the last `cargo test`.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    fetch_model::run()?;
    // The build that `cargo test` makes too, and beside it the binary that the clients call.
    process::run(process::cargo("build").args(["--workspace", "--locked", "--bins", "--tests"]))?;
    for requirements in REQUIREMENTS {
        run_clients(requirements)?;
    }
    process::run(process::cargo("test").args(["--workspace", "--locked"]).args(args))
}

/// One set of the official Python SDKs against the binary of the dev profile, in an environment of its own.
fn run_clients(requirements: &str) -> Outcome {
    let (folder, target) = (workspace::root().join("tests").join("clients"), workspace::target()?);
    let environment = target.join("clients").join(requirements);
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.exists() {
        println!("making a Python environment in {}", environment.display());
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "-r"];
    process::run(Command::new(&python).args(pip).arg(folder.join(requirements).with_extension("txt")))?;
    let program = target.join("debug").join(format!("sluicegate{}", std::env::consts::EXE_SUFFIX));
    let mut pytest = Command::new(&python);
    pytest.current_dir(folder).env(PROGRAM, program).args(["-m", "pytest", "-q"]);
    process::run(&mut pytest)
}

/// The files that name the SDKs: their current majors, and the ones before.
const REQUIREMENTS: [&str; 2] = ["requirements", "requirements-previous"];
/// Tells the client tests which binary to run.
const PROGRAM: &str = "SLUICEGATE_BIN";
