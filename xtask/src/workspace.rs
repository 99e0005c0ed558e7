//! The folders of the workspace, its packages and its target.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};

use crate::{Outcome, process};

/// The root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // The variable of the running cargo, since the one of the build is wrong once the folder has moved.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map_or_else(|| own.clone(), Path::to_path_buf)
}

/// The packages of the workspace as their manifests declare them; nothing is resolved or downloaded.
pub(crate) fn metadata() -> Outcome<Metadata> {
    let mut command = MetadataCommand::new();
    command.cargo_path(process::cargo_path()).current_dir(root()).no_deps();
    command.exec().map_err(|error| format!("cargo metadata failed: {error}"))
}

/// Every file that git tracks or would add, from the root.
pub(crate) fn files() -> Outcome<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
    Ok(process::output(&mut git)?.split_terminator('\0').map(str::to_owned).collect())
}

/// The folder into which cargo builds.
pub(crate) fn target() -> Outcome<PathBuf> {
    Ok(metadata()?.target_directory.into())
}

/// The path of the gateway's binary for a profile.
pub(crate) fn program(profile: &str) -> Outcome<PathBuf> {
    binary(profile, "sluicegate")
}

/// The path of the simulator's binary for a profile.
pub(crate) fn simulator(profile: &str) -> Outcome<PathBuf> {
    binary(profile, "sluicegate-simulator")
}

pub(crate) fn binary(profile: &str, name: &str) -> Outcome<PathBuf> {
    Ok(target()?.join(profile).join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}
