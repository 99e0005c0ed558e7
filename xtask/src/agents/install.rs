//! Installs the agents below the target folder.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{process, python, seed, workspace};

/// Installs the packages that `tests/agents` names, if that has not been done already. Returns a
/// search path that begins with their programs.
pub(super) fn install() -> Outcome<OsString> {
    let requirements = workspace::root().join("tests/agents/requirements.txt");
    let python = python::environment("agents", &requirements)?;
    let python = python.parent().map(PathBuf::from).unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [node()?, python]
        .into_iter()
        .chain(std::env::split_paths(&path));
    std::env::join_paths(folders).map_err(|error| format!("the PATH cannot be extended: {error}"))
}

/// Installs the packages of npm. Like an environment of Python, they are complete when they have
/// their stamp.
fn node() -> Outcome<PathBuf> {
    let from = workspace::root().join("tests/agents");
    let folder = workspace::target()?.join("agents/node");
    let programs = folder.join("node_modules/.bin");
    let lock = from.join("package-lock.json");
    let wanted = format!("{:016x}\n", seed::of(&fs::read_to_string(&lock).at(&lock)?));
    let stamp = folder.join("complete");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(programs);
    }
    println!(
        "installing agents in {}; they are about 2 GB",
        folder.display()
    );
    fs::create_dir_all(&folder).at(&folder)?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(from.join(name), folder.join(name)).at(from.join(name))?;
    }
    // Not `ci`, which refuses a lock file without the programs of other platforms.
    let install = ["install", "--no-audit", "--no-fund", "--loglevel=error"];
    process::run(Command::new("npm").current_dir(&folder).args(install))?;
    fs::write(&stamp, wanted).at(&stamp)?;
    Ok(programs)
}
