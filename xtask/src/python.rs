//! Python environments under the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, process, workspace};

/// The interpreter of the environment `name` that has what `requirements` names; it is made where there is none.
pub(crate) fn environment(name: &str, requirements: &Path) -> Outcome<PathBuf> {
    let folder = workspace::target()?.join("python").join(name);
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.exists() {
        println!("making a Python environment in {}", folder.display());
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "-r"];
    process::run(Command::new(&python).args(pip).arg(requirements))?;
    Ok(python)
}
