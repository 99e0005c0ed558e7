//! A build that is optimised by a profile: an instrumented gateway does the work of the benches,
//! and the compiler arranges the code by what it has counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{process, workspace};

/// Builds the gateway that is arranged by a profile. Returns its path.
pub(super) fn build(is_lean: bool) -> Outcome<PathBuf> {
    let compiler = Compiler::of(&process::output(&mut rustc(&["-vV"]))?)?;
    let profdata = compiler.profdata()?;
    let programs = super::programs()?;
    let folder = workspace::target()?.join("pgo");
    let (raw, merged) = (folder.join("raw"), folder.join("merged.profdata"));
    if raw.exists() {
        fs::remove_dir_all(&raw).at(&raw)?;
    }
    fs::create_dir_all(&raw).at(&raw)?;
    let flag = format!("-Cprofile-generate={}", raw.display());
    let instrumented = compiler.gateway(&folder.join("instrumented"), &flag, is_lean)?;
    process::echoed(Command::new(programs.join("train")).arg(instrumented))?;
    process::echoed(
        Command::new(profdata)
            .arg("merge")
            .arg("-o")
            .args([&merged, &raw]),
    )?;
    let flag = format!("-Cprofile-use={}", merged.display());
    compiler.gateway(&folder.join("trained"), &flag, is_lean)
}

/// The compiler that builds the gateway.
#[derive(Debug, PartialEq)]
struct Compiler {
    /// The target that it runs on.
    host: String,
    /// The major version of its LLVM.
    llvm: u32,
}

impl Compiler {
    /// Parses the output of `rustc -vV`.
    fn of(version: &str) -> Outcome<Self> {
        let value = |name: &str| version.lines().find_map(|line| line.strip_prefix(name));
        let llvm = value("LLVM version: ").and_then(major);
        value("host: ")
            .zip(llvm)
            .map(|(host, llvm)| Self {
                host: host.to_owned(),
                llvm,
            })
            .ok_or_else(|| format!("the compiler does not tell its LLVM: {version:?}"))
    }

    /// The program that merges profiles: that of the toolchain, or one on the PATH that is not
    /// older.
    fn profdata(&self) -> Outcome<PathBuf> {
        let sysroot = process::output(&mut rustc(&["--print", "sysroot"]))?;
        let own = Path::new(sysroot.trim())
            .join("lib/rustlib")
            .join(&self.host)
            .join("bin/llvm-profdata");
        let others = [
            format!("llvm-profdata-{}", self.llvm),
            "llvm-profdata".into(),
        ];
        let mut programs = [own].into_iter().chain(others.map(PathBuf::from));
        programs
            .find(|program| version(program).is_some_and(|version| version >= self.llvm))
            .ok_or_else(|| {
                format!(
                    "the profile is merged by `llvm-profdata` of LLVM {0} or newer, which is not there: install it by \
                     `rustup component add llvm-tools`, or put llvm-profdata-{0} on the PATH",
                    self.llvm
                )
            })
    }

    /// Builds the gateway with a flag. With a named target, flags are for the gateway alone, and not
    /// for the programs that run during the build.
    fn gateway(&self, target: &Path, flag: &str, is_lean: bool) -> Outcome<PathBuf> {
        let mut command = workspace::cargo("build");
        command
            .args(["--release", "--locked", "--target", &self.host])
            .arg("--target-dir")
            .arg(target)
            .args(super::package(is_lean))
            .env("CARGO_ENCODED_RUSTFLAGS", flag);
        process::echoed(&mut command)?;
        Ok(target.join(&self.host).join("release/sluicegate"))
    }
}

fn rustc(args: &[&str]) -> Command {
    let mut command = Command::new("rustc");
    command.current_dir(workspace::root()).args(args);
    command
}

/// The major version of a program of LLVM, if it is there.
fn version(program: &Path) -> Option<u32> {
    let output = Command::new(program)
        .args(["merge", "--version"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    major(text.split_once("LLVM version ")?.1)
}

/// The first number of a version.
fn major(version: &str) -> Option<u32> {
    version.trim().split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_reports_its_llvm() {
        let version =
            "rustc 1.95.0\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.2\n";
        assert_eq!(
            Compiler::of(version),
            Ok(Compiler {
                host: "x86_64-unknown-linux-gnu".to_owned(),
                llvm: 22
            })
        );
        assert!(Compiler::of("rustc 1.95.0\n").is_err());
    }

    #[test]
    fn missing_programs_are_named_with_their_package() {
        let compiler = Compiler {
            host: "no-such-host".to_owned(),
            llvm: 9_999,
        };
        let error = compiler.profdata().unwrap_err();
        assert!(
            error.contains("LLVM 9999") && error.contains("rustup component add llvm-tools"),
            "{error}"
        );
    }
}
