//! Checks for the system programs that builds need, before a long build fails without them.

use std::process::{Command, Stdio};

use crate::outcome::Outcome;

/// Checks for the C compiler and make, with which the allocator and the image codecs are built.
pub(crate) fn compiler() -> Outcome {
    ["cc", "make"]
        .into_iter()
        .try_for_each(|program| present(program, COMPILER))
}

/// Checks for valgrind, which counts instructions.
pub(crate) fn valgrind() -> Outcome {
    present("valgrind", VALGRIND)
}

/// Fails with what to install if a program cannot be started.
fn present(program: &str, advice: &str) -> Outcome {
    let probe = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe
        .map(drop)
        .map_err(|error| format!("`{program}` cannot be run ({error}). {advice}"))
}

const COMPILER: &str = "A C compiler and make are needed (Debian and Ubuntu: `apt-get install gcc make`; Fedora: `dnf \
                        install gcc make`; macOS: `xcode-select --install`)";
const VALGRIND: &str = "Instructions are counted by valgrind, which runs on Linux (Debian and Ubuntu: `apt-get install \
                        valgrind libc6-dbg`; Fedora: `dnf install valgrind`)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_what_to_install() {
        let error = present("sluicegate-no-such-program", COMPILER).unwrap_err();
        assert!(
            error.starts_with("`sluicegate-no-such-program` cannot be run"),
            "{error}"
        );
        assert!(error.contains("apt-get install gcc make"), "{error}");
    }
}
