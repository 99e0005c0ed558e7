//! Installs Python packages with the user's pip, its settings and mirrors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{process, seed, workspace};

/// The interpreter of the environment `name` in the target folder, with the packages of the file
/// `requirements`.
///
/// An environment is complete when it has its stamp: the list of packages and the version of
/// Python. Another one, whose installation was interrupted or whose Python was removed, is created
/// again.
pub(crate) fn environment(name: &str, requirements: &Path) -> Outcome<PathBuf> {
    let folder = workspace::target()?.join("python").join(name);
    let python = folder.join("bin/python");
    let list = fs::read_to_string(requirements).at(requirements)?;
    let version = version(Path::new("python3"))?;
    sufficient(&version)?;
    let stamp = folder.join("complete");
    let wanted = format!("{version} {:016x}\n", seed::of(&list));
    let found = fs::read_to_string(&stamp).unwrap_or_default();
    if found != wanted || self::version(&python).is_err() {
        println!("creating a Python environment in {}", folder.display());
        let mut venv = Command::new("python3");
        process::run(venv.args(["-m", "venv", "--clear"]).arg(&folder))
            .map_err(|error| format!("{error}. {NO_VENV}"))?;
        let mut pip = Command::new(&python);
        process::run(pip.args(INSTALL.split(' ')).arg(requirements))?;
        fs::write(&stamp, wanted).at(&stamp)?;
    }
    Ok(python)
}

/// A command that runs `tests/NAME/run.py` in an environment with the packages that it requires. Its
/// first argument is the target folder.
pub(crate) fn script(name: &str) -> Outcome<Command> {
    let folder = workspace::root().join("tests").join(name);
    let python = environment(name, &folder.join("requirements.txt"))?;
    let mut command = Command::new(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(folder.join("run.py")).arg(workspace::target()?);
    Ok(command)
}

/// Installs a package, with its hashes in the format of pip, into a folder without an environment:
/// its programs are in `bin`. Prints how much has arrived, if the `size` of the package is given in bytes.
pub(crate) fn package(requirement: &str, folder: &Path, size: Option<u64>) -> Outcome {
    fs::create_dir_all(folder).at(folder)?;
    let list = folder.join("requirements.txt");
    fs::write(&list, requirement).at(&list)?;
    let mut pip = Command::new("python3");
    if let Some(size) = size {
        pip.arg(workspace::root().join("xtask/progress.py"))
            .arg(folder);
        pip.args([&size.to_string(), "python3"]);
    }
    pip.args(INSTALL.split(' ')).arg(list);
    pip.args(["--no-deps", "--require-hashes"]);
    pip.args(["--only-binary", ":all:", "--root-user-action=ignore"]);
    // pip's temporary files are written where space is needed anyway.
    process::run(pip.arg("--target").arg(folder).env("TMPDIR", folder))
}

/// The version of an interpreter, such as `3.11`.
fn version(python: &Path) -> Outcome<String> {
    let script = "import sys; print('%d.%d' % sys.version_info[:2])";
    let output = process::output(Command::new(python).args(["-c", script]));
    let version = output.map_err(|error| format!("{error}. {NEEDED}"))?;
    Ok(version.trim().to_owned())
}

/// Rejects a Python for which the packages of the tests have no release.
fn sufficient(version: &str) -> Outcome {
    let numbers = version.split('.').filter_map(|number| number.parse().ok());
    match numbers.collect::<Vec<u32>>()[..] >= LEAST[..] {
        true => Ok(()),
        false => Err(format!("python3 is version {version}. {NEEDED}")),
    }
}

/// The arguments that install the packages of a file, whose path is the next argument.
const INSTALL: &str = "-m pip install --quiet --no-input --disable-pip-version-check --requirement";
/// The packages of the tests have no releases for older ones.
const LEAST: [u32; 2] = [3, 11];
const NEEDED: &str = "The tests need Python 3.11 or newer as `python3`, with pip and venv (on Debian and Ubuntu: `apt-get \
                      install python3 python3-pip python3-venv`; elsewhere: python.org)";
const NO_VENV: &str = "Python's venv module is missing or broken (on Debian and Ubuntu: `apt-get install python3-venv`)";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The command that downloads waits for the line about each part.
    #[test]
    fn a_download_prints_a_line_for_each_tenth() {
        let folder = std::env::temp_dir().join(format!("xtask-python-{}", std::process::id()));
        fs::create_dir_all(folder.join("pip-unpack-1")).unwrap();
        let [package, log] =
            ["pip-unpack-1/a-1-py3-none-any.whl", "log"].map(|name| folder.join(name));
        let script = r#"for part in 25 50; do
            head -c 10000000 /dev/zero >> "$0"
            until grep -q " $part %" "$1"; do sleep 0.01; done
        done; exit 3"#;
        let mut shown = Command::new("python3");
        shown
            .arg(workspace::root().join("xtask/progress.py"))
            .arg(&folder);
        shown
            .args(["40000000", "sh", "-c", script])
            .args([&package, &log]);
        let shown = process::logged(&mut shown, &log).unwrap();
        let status = process::bounded(shown, Duration::from_secs(60)).unwrap();
        assert_eq!(status.unwrap().code(), Some(3));
        let printed = fs::read_to_string(&log).unwrap();
        let lines = printed
            .lines()
            .map(|line| line.rsplit_once(", ").unwrap().0);
        assert_eq!(
            lines.collect::<Vec<_>>(),
            ["10 of 40 MB, 25 %", "20 of 40 MB, 50 %"]
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_old_python_is_refused_with_the_needed_version() {
        assert_eq!(sufficient("3.11"), Ok(()));
        assert_eq!(sufficient("4.0"), Ok(()));
        let refusal = sufficient("3.9").unwrap_err();
        assert!(
            refusal.starts_with("python3 is version 3.9. The tests need Python 3.11 or newer"),
            "{refusal}"
        );
    }

    #[test]
    fn an_absent_python_is_refused_with_the_packages_to_install() {
        let refusal = version(Path::new("sluicegate-no-such-python")).unwrap_err();
        assert!(
            refusal.contains("is not installed") && refusal.contains("apt-get install python3"),
            "{refusal}"
        );
    }
}
