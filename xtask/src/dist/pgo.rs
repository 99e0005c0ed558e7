//! A build that is optimised by a profile: an instrumented gateway does the work of the benches,
//! and the compiler arranges the code by the recorded counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::flagged;
use crate::outcome::{At as _, Outcome};
use crate::{process, workspace};

/// Runs a line of cargo that builds the gateway, with a profile and other flags of the compiler.
/// Returns the path of the gateway.
pub(super) fn build(others: &[&str], line: &str) -> Outcome<PathBuf> {
    let profdata = profdata(&super::host()?)?;
    let programs = super::programs("--bins")?;
    let folder = workspace::target()?.join("pgo");
    let (raw, merged) = (folder.join("raw"), folder.join("merged.profdata"));
    workspace::remove(&raw)?;
    fs::create_dir_all(&raw).at(&raw)?;
    let flag = format!("-Cprofile-generate={}", raw.display());
    let instrumented = flagged(
        &folder.join("instrumented"),
        &[others, &[&flag]].concat(),
        line,
    )?;
    process::echoed(Command::new(programs.join("train")).arg(instrumented))?;
    let mut merge = Command::new(profdata);
    process::echoed(merge.args(["merge", "-o"]).args([&merged, &raw]))?;
    let flag = format!("-Cprofile-use={}", merged.display());
    flagged(&folder.join("trained"), &[others, &[&flag]].concat(), line)
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
