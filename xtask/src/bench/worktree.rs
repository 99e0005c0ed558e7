//! Gateways of other sources, built as the lean one is, in a git worktree under `target`.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::outcome::{At as _, Outcome};
use crate::{dist, process, workspace};

/// Builds the gateway of a commit, with one more copy of the body of a request if `is_planted`.
/// Returns its path.
pub(super) fn gateway(commit: &OsStr, is_planted: bool) -> Outcome<PathBuf> {
    let folder = workspace::target()?.join("worktree");
    let (tree, target) = (folder.join("tree"), folder.join("target"));
    workspace::remove(&tree)?;
    // With `--force`, since git still knows the worktree that was removed.
    let mut add = workspace::git("worktree add --quiet --force --detach");
    process::run(add.arg(&tree).arg(commit))?;
    if is_planted {
        let source = std::fs::read_to_string(tree.join(FILE)).at(FILE)?;
        std::fs::write(tree.join(FILE), planted(&source)?).at(FILE)?;
    }
    let mut build = workspace::cargo(dist::LEAN);
    build.args(["--release", "--locked", "--target-dir"]);
    process::run(build.arg(&target).current_dir(&tree))?;
    Ok(target.join("release/sluicegate"))
}

/// The source with the copy.
fn planted(source: &str) -> Outcome<String> {
    match source.matches(FIND).count() {
        1 => Ok(source.replace(FIND, PLANT)),
        count => Err(format!(
            "{FIND:?} occurs {count} times in {FILE}, and must occur once"
        )),
    }
}

const FILE: &str = "crates/server/src/body/upload.rs";
const FIND: &str = "bytes: pieces.join(),";
const PLANT: &str = "bytes: Bytes::copy_from_slice(&pieces.join()),";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_copy_is_there() {
        let source = workspace::read(FILE).unwrap();
        assert!(planted(&source).unwrap().contains(PLANT));
        assert!(planted("").unwrap_err().contains("occurs 0 times"));
    }
}
