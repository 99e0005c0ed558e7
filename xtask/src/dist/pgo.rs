//! A build that is optimised by a profile: an instrumented gateway does the work of the benches,
//! and the compiler arranges the code by the recorded counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{process, workspace};

/// Builds the gateway with a profile. Returns its path.
pub(super) fn build(is_lean: bool) -> Outcome<PathBuf> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let mut lines = version.lines();
    let host = lines.find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| format!("rustc reports no host: {version}"))?;
    let profdata = profdata(host)?;
    let programs = super::programs("--bins")?;
    let folder = workspace::target()?.join("pgo");
    let (raw, merged) = (folder.join("raw"), folder.join("merged.profdata"));
    workspace::remove(&raw)?;
    fs::create_dir_all(&raw).at(&raw)?;
    let flag = format!("-Cprofile-generate={}", raw.display());
    let instrumented = gateway(host, &folder.join("instrumented"), &flag, is_lean)?;
    process::echoed(Command::new(programs.join("train")).arg(instrumented))?;
    let mut merge = Command::new(profdata);
    process::echoed(merge.args(["merge", "-o"]).args([&merged, &raw]))?;
    let flag = format!("-Cprofile-use={}", merged.display());
    gateway(host, &folder.join("trained"), &flag, is_lean)
}

/// The program of the toolchain that merges profiles.
fn profdata(host: &str) -> Outcome<PathBuf> {
    let sysroot = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let path = format!("{}/lib/rustlib/{host}/bin/llvm-profdata", sysroot.trim());
    match Path::new(&path).exists() {
        true => Ok(path.into()),
        false => Err(format!(
            "there is no {path}: install it by `rustup component add llvm-tools`"
        )),
    }
}

/// Builds the gateway with a flag. With a named target, flags are for the gateway alone, and not for
/// the programs that run during the build.
fn gateway(host: &str, target: &Path, flag: &str, is_lean: bool) -> Outcome<PathBuf> {
    let mut build = workspace::cargo(super::gateway(is_lean));
    build.args(["--release", "--locked", "--target", host, "--target-dir"]);
    process::echoed(build.arg(target).env("CARGO_ENCODED_RUSTFLAGS", flag))?;
    Ok(target.join(host).join("release/sluicegate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_profdata_is_named_with_its_component() {
        let error = profdata("no-such-host").unwrap_err();
        assert!(
            error.contains("no-such-host/bin/llvm-profdata: install it by `rustup"),
            "{error}"
        );
    }
}
