//! `cargo xtask bench instructions --planted`: shows that the counter fails on one more copy of the
//! body of a request.

use std::path::PathBuf;

use crate::mutate::copy_if_changed;
use crate::outcome::{At as _, Outcome};
use crate::{dist, process, workspace};

/// Builds a gateway with the planted copy, in a copy of the work tree and as the lean one is built.
/// Returns its path.
pub(super) fn build() -> Outcome<PathBuf> {
    let folder = workspace::target()?.join("planted");
    let (root, tree) = (workspace::root(), folder.join("tree"));
    for name in workspace::files()? {
        let source = root.join(&name);
        if source.is_file() && name != FILE {
            copy_if_changed(&source, &tree.join(&name)).at(&name)?;
        }
    }
    let file = tree.join(FILE);
    let parent = file.parent().ok_or("the file has no folder")?;
    std::fs::create_dir_all(parent).at(parent)?;
    std::fs::write(&file, planted(&workspace::read(FILE)?)?).at(&file)?;
    let mut command = workspace::cargo("build");
    command
        .current_dir(&tree)
        .args(["--release", "--locked"])
        .args(dist::LEAN)
        .arg("--target-dir")
        .arg(folder.join("target"));
    process::run(&mut command)?;
    Ok(folder.join("target/release/sluicegate"))
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
