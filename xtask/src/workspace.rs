//! The folders of the workspace, its packages and its target, and commands that run in it.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::outcome::{At as _, Outcome};
use crate::process;

/// The root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // The variable of the running cargo, since the one of the build is wrong once the folder has
    // moved.
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map_or_else(|| own.clone(), Path::to_path_buf)
}

/// The cargo that runs this task.
pub(crate) fn cargo_path() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A cargo command in the workspace, whose arguments are the words of `line`.
pub(crate) fn cargo(line: &str) -> Command {
    let mut command = Command::new(cargo_path());
    command.current_dir(root()).args(line.split_whitespace());
    without_own_package(&mut command);
    command
}

/// Removes the variables in which `cargo run` describes xtask: build scripts that depend on them
/// would be run again.
pub(crate) fn without_own_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
}

/// A git command in the workspace, whose arguments are the words of `line`.
pub(crate) fn git(line: &str) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root()).args(line.split_whitespace());
    git
}

/// The packages of the workspace as their manifests declare them; nothing is resolved or
/// downloaded.
pub(crate) fn metadata() -> Outcome<Metadata> {
    let mut command = MetadataCommand::new();
    command.cargo_path(cargo_path()).current_dir(root());
    command.other_options(["--no-deps".to_owned()]);
    command.exec().at("cargo metadata")
}

/// The folder of a package inside `crates/`; `None` for other packages.
pub(crate) fn crate_folder(package: &Package) -> Option<&str> {
    let folder = package.manifest_path.parent()?;
    (folder.parent()?.file_name()? == "crates").then_some(folder.file_name()?)
}

/// The names, from the root, and the texts of the files that git tracks or would add, and that are
/// wanted. Files that were deleted but not yet committed, or are not text, are left out.
pub(crate) fn texts(is_wanted: impl Fn(&str) -> bool) -> Outcome<Vec<(String, String)>> {
    let mut list = git("ls-files --cached --others --exclude-standard -z");
    let names = process::output(&mut list)?;
    let wanted = names.split_terminator('\0').filter(|name| is_wanted(name));
    let texts = wanted.filter_map(|name| Some((name.to_owned(), read(name).ok()?)));
    Ok(texts.collect())
}

/// Reads a file, named from the root.
pub(crate) fn read(name: impl AsRef<Path>) -> Outcome<String> {
    fs::read_to_string(root().join(&name)).at(name)
}

/// Writes a file, named from the root.
pub(crate) fn write(name: &str, text: impl AsRef<[u8]>) -> Outcome {
    fs::write(root().join(name), text).at(name)
}

/// The folder into which cargo builds.
pub(crate) fn target() -> Outcome<PathBuf> {
    Ok(metadata()?.target_directory.into())
}

/// Removes a folder with all that it contains, if it exists.
pub(crate) fn remove(folder: &Path) -> Outcome {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at(folder),
        _ => Ok(()),
    }
}

/// The path of a program in the development build.
pub(crate) fn binary(name: &str) -> Outcome<PathBuf> {
    Ok(target()?.join("debug").join(name))
}

/// The arguments of a program, with the path of its `page`, named from the root, after `--write`.
pub(crate) fn with_page(args: &[OsString], page: &str) -> Vec<OsString> {
    let mut all = args.to_vec();
    if let Some(write) = all.iter().position(|arg| arg == "--write") {
        all.insert(write + 1, root().join(page).into());
    }
    all
}

/// The features of a build for tests: all but jemalloc, whose C takes 100 seconds of CPU time.
pub(crate) const TEST_FEATURES: &str = " --no-default-features --features image-engine,\
                                        postgres,sqlite,sluicegate-server/text-engine,valkey";
