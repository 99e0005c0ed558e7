//! Checks for the system programs that builds and tests need, before a long build fails without
//! them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::outcome::{At as _, Outcome};

/// Checks for the C compiler and make, with which the allocator and the image codecs are built.
pub(crate) fn compiler() -> Outcome {
    present("cc", COMPILER)?;
    present("make", COMPILER)
}

/// Checks for valgrind, which counts instructions.
pub(crate) fn valgrind() -> Outcome {
    present("valgrind", VALGRIND)
}

/// The absolute path of the program that an environment variable names, if it is set and not empty.
pub(crate) fn configured(variable: &str) -> Outcome<Option<PathBuf>> {
    named(variable, std::env::var_os(variable))
}

fn named(variable: &str, value: Option<OsString>) -> Outcome<Option<PathBuf>> {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(value);
    if !path.is_file() {
        let expected = "which is not a file: expected the path of a program";
        return Err(format!("{variable} is {path:?}, {expected}"));
    }
    // Tests run in other folders. Links are kept, since some programs act by their own name.
    std::path::absolute(path).at(variable).map(Some)
}

/// Fails with installation advice if a program cannot be started.
fn present(program: &str, advice: &str) -> Outcome {
    match Command::new(program).arg("--version").output() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("`{program}` cannot be run ({error}). {advice}")),
    }
}

const COMPILER: &str = "A C compiler and make are needed (Debian and Ubuntu: `apt-get install gcc make`; Fedora: `dnf \
                        install gcc make`; macOS: `xcode-select --install`)";
const VALGRIND: &str = "Instructions are counted by valgrind, which runs on Linux (Debian and Ubuntu: `apt-get install \
                        valgrind libc6-dbg`; Fedora: `dnf install valgrind`)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_named_with_their_package() {
        let error = present("sluicegate-no-such-program", COMPILER).unwrap_err();
        assert!(
            error.starts_with("`sluicegate-no-such-program` cannot be run"),
            "{error}"
        );
        assert!(error.contains("apt-get install gcc make"), "{error}");
    }

    #[test]
    fn a_configured_program_is_a_file() {
        let set = |value: &str| named("SLUICEGATE_X", Some(value.into()));
        assert_eq!(named("SLUICEGATE_X", None), Ok(None));
        assert_eq!(set(""), Ok(None));
        // Unit tests run in the folder of their package.
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert_eq!(set("Cargo.toml"), Ok(Some(here.into())));
        let expected =
            "SLUICEGATE_X is \"src\", which is not a file: expected the path of a program";
        assert_eq!(set("src"), Err(expected.to_owned()));
    }
}
