//! Creates Python environments below the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{process, seed, workspace};

/// The interpreter of the environment `name` with the packages of the file `requirements`.
///
/// An environment is complete when it has its stamp: the list of packages and the version of
/// Python. One without a stamp, whose installation was interrupted or whose Python was removed, is
/// created again.
pub(crate) fn environment(name: &str, requirements: &Path) -> Outcome<PathBuf> {
    let folder = workspace::target()?.join("python").join(name);
    let python = folder.join("bin/python");
    let list = fs::read_to_string(requirements).at(requirements)?;
    let version = version(Path::new("python3"))?;
    sufficient(&version)?;
    let stamp = folder.join("complete");
    let wanted = format!("{version} {:016x}\n", seed::of(&list));
    let is_complete = fs::read_to_string(&stamp).is_ok_and(|found| found == wanted)
        && self::version(&python).is_ok();
    if !is_complete {
        make(&folder, &python, requirements)?;
        fs::write(&stamp, wanted).at(&stamp)?;
    }
    Ok(python)
}

fn make(folder: &Path, python: &Path, requirements: &Path) -> Outcome {
    println!("creating a Python environment in {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).at(folder)?;
    }
    process::run(Command::new("python3").args(["-m", "venv"]).arg(folder))
        .map_err(|error| format!("{error}. {NO_VENV}"))?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "-r",
    ];
    process::run(Command::new(python).args(pip).arg(requirements))
}

/// The version of an interpreter, such as `3.11`.
fn version(python: &Path) -> Outcome<String> {
    let script = "import sys; print('%d.%d' % sys.version_info[:2])";
    let output = process::output(Command::new(python).args(["-c", script]));
    Ok(output
        .map_err(|error| format!("{error}. {NEEDED}"))?
        .trim()
        .to_owned())
}

/// Rejects a Python for which the packages of the tests have no release.
fn sufficient(version: &str) -> Outcome {
    let numbers: Vec<u32> = version
        .split('.')
        .filter_map(|number| number.parse().ok())
        .collect();
    match numbers[..] >= LEAST[..] {
        true => Ok(()),
        false => Err(format!("python3 is version {version}. {NEEDED}")),
    }
}

/// The packages of the tests have no releases for older ones.
const LEAST: [u32; 2] = [3, 11];
const NEEDED: &str = "The tests need Python 3.11 or newer as `python3`, with pip and venv (on Debian and Ubuntu: `apt-get \
                      install python3 python3-pip python3-venv`; elsewhere: python.org)";
const NO_VENV: &str = "Python's venv module is missing or broken (on Debian and Ubuntu: `apt-get install python3-venv`)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_python_is_refused_with_what_is_needed() {
        assert_eq!(sufficient("3.11"), Ok(()));
        assert_eq!(sufficient("4.0"), Ok(()));
        let refusal = sufficient("3.9").unwrap_err();
        assert!(
            refusal.starts_with("python3 is version 3.9. The tests need Python 3.11 or newer"),
            "{refusal}"
        );
    }

    #[test]
    fn an_absent_python_is_refused_with_what_is_needed() {
        let refusal = version(Path::new("sluicegate-no-such-python")).unwrap_err();
        assert!(
            refusal.contains("is not installed") && refusal.contains("apt-get install python3"),
            "{refusal}"
        );
    }
}
