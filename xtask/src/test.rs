//! `cargo xtask test`: every test, from a bare machine.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::{Outcome, fetch_model, process, workspace};

/// Brings the model if it is absent and runs the tests; `args` go to the last `cargo test`.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    fetch_model::run()?;
    let clients = workspace::root().join("tests").join("clients");
    if clients.join(REQUIREMENTS).exists() {
        // The build that `cargo test` makes too, and beside it the binary that the clients call.
        process::run(process::cargo("build").args(["--workspace", "--locked", "--bins", "--tests"]))?;
        run_clients(&clients)?;
    }
    process::run(process::cargo("test").args(["--workspace", "--locked"]).args(args))
}

/// The official Python SDKs against the binary of the dev profile, in an environment of their own.
fn run_clients(folder: &Path) -> Outcome {
    let environment = folder.join(".venv");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.exists() {
        println!("making a Python environment in tests/clients/.venv");
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "-r"];
    process::run(Command::new(&python).args(pip).arg(folder.join(REQUIREMENTS)))?;
    let program = workspace::target()?.join("debug").join(format!("sluicegate{}", std::env::consts::EXE_SUFFIX));
    let mut pytest = Command::new(&python);
    pytest.current_dir(folder).env(PROGRAM, program).args(["-m", "pytest", "-q", "."]);
    process::run(&mut pytest)
}

const REQUIREMENTS: &str = "requirements.txt";
/// Tells the client tests which binary to run.
const PROGRAM: &str = "SLUICEGATE_BIN";
