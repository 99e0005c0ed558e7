//! Gateways of other sources, built to count their instructions, in a git worktree under `target`.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::outcome::{At as _, Outcome};
use crate::{dist, process, workspace};

/// A change of the source that a bench has to find: the file, the text to find, and its replacement.
pub(super) type Plant = [&'static str; 3];

/// One more copy of the body of a request.
pub(super) const COPY: Plant = [
    "crates/gateway/src/exchange/body/upload.rs",
    "bytes: pieces.join(),",
    "bytes: Bytes::copy_from_slice(&pieces.join()),",
];

/// A comparison of each edit of a document with all edits before it.
pub(super) const QUADRATIC_LOOP: Plant = [
    "crates/wire/src/splice.rs",
    "&self.edits[at.saturating_sub(1)..self.edits.len().min(at + 1)];",
    "&self.edits[..];",
];

/// Builds the gateway of a commit, with a planted change if there is one. Returns its path.
pub(super) fn gateway(commit: &OsStr, plant: Option<Plant>) -> Outcome<PathBuf> {
    let folder = workspace::target()?.join("worktree");
    let tree = folder.join("tree");
    workspace::remove(&tree)?;
    // With `--force`, since git still knows the worktree that was removed.
    let mut add = workspace::git("worktree add --quiet --force --detach");
    process::run(add.arg(&tree).arg(commit))?;
    if let Some(plant) = plant {
        let file = tree.join(plant[0]);
        let source = std::fs::read_to_string(&file).at(plant[0])?;
        std::fs::write(&file, planted(plant, &source)?).at(plant[0])?;
    }
    let mut build = dist::counted(workspace::cargo(""));
    build.env("CARGO_TARGET_DIR", folder.join("target"));
    process::run(build.current_dir(&tree))?;
    Ok(folder.join("target/counts/sluicegate"))
}

/// The source with the change.
fn planted([file, find, replacement]: Plant, source: &str) -> Outcome<String> {
    match source.matches(find).count() {
        1 => Ok(source.replace(find, replacement)),
        count => Err(format!(
            "{find:?} occurs {count} times in {file}, and must occur once"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_the_changes_are_there() {
        for plant in [COPY, QUADRATIC_LOOP] {
            let source = workspace::read(plant[0]).unwrap();
            assert!(planted(plant, &source).unwrap().contains(plant[2]));
            let missing = planted(plant, "").unwrap_err();
            assert!(missing.contains("occurs 0 times"), "{missing}");
        }
    }
}
