//! The copy of the repository in which trials are run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest as _, Sha256};

use super::list::{self, Mutation};
use crate::outcome::{At as _, Outcome};
use crate::workspace;

/// The copy of the work tree at the time when it was opened: later edits have no effect on any
/// trial.
pub(super) struct Copy {
    folder: PathBuf,
    files: BTreeSet<String>,
    /// Identifies this state of the sources.
    stamp: String,
    /// The file that is mutated, and its original text.
    mutated: Option<(PathBuf, String)>,
}

impl Copy {
    /// Makes the copy in `target/mutate` identical to the work tree. Unchanged files keep their
    /// modification time, so that cargo rebuilds little.
    pub(super) fn open() -> Outcome<Self> {
        let root = workspace::root();
        let folder = workspace::target()?.join("mutate");
        let files = workspace::files()?
            .into_iter()
            .filter(|name| root.join(name).is_file())
            .collect();
        Self::of(&root, folder, files)
    }

    fn of(root: &Path, folder: PathBuf, files: BTreeSet<String>) -> Outcome<Self> {
        let tree = folder.join(TREE);
        fs::create_dir_all(&tree).at(&tree)?;
        let mut hash = Sha256::new();
        for name in &files {
            let content = renew(&root.join(name), &tree.join(name)).at(name)?;
            if !is_beside(name) {
                hash.update(name);
                hash.update((content.len() as u64).to_le_bytes());
                hash.update(content);
            }
        }
        let stamp = list::hex(&hash.finalize());
        let mut copy = Self {
            folder,
            files,
            stamp,
            mutated: None,
        };
        copy.restore()?;
        Ok(copy)
    }

    /// Reverts the last mutation, and applies this one.
    ///
    /// # Errors
    ///
    /// If the text that it looks for is not in its file exactly once.
    pub(super) fn mutate(&mut self, mutation: &Mutation) -> Outcome {
        self.restore()?;
        let path = self.folder.join(TREE).join(&mutation.file);
        let text = fs::read_to_string(&path).at(&mutation.file)?;
        let changed = mutation
            .applied(&text)
            .map_err(|error| format!("mutation {}: {error}", mutation.name))?;
        fs::write(&path, changed).at(&mutation.file)?;
        self.mutated = Some((path, text));
        Ok(())
    }

    /// Reverts the last mutation, and removes files that tests have created.
    pub(super) fn restore(&mut self) -> Outcome {
        if let Some((path, text)) = self.mutated.take() {
            fs::write(&path, text).at(&path)?;
        }
        let tree = self.folder.join(TREE);
        prune(&tree, &tree, &self.files).at(&tree)
    }

    /// A cargo command in the copy.
    pub(super) fn cargo(&self, subcommand: &str) -> std::process::Command {
        let mut command = workspace::cargo(subcommand);
        command
            .current_dir(self.folder.join(TREE))
            .env("CARGO_TARGET_DIR", self.folder.join("target"));
        // The time to compile and link a small change is what matters.
        command.envs([
            ("CARGO_PROFILE_DEV_DEBUG", "none"),
            ("CARGO_INCREMENTAL", "1"),
        ]);
        command
    }

    /// The folder of a trial's build as long as the sources are in this state.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.folder
            .join("kept")
            .join(format!("{name}-{}", self.stamp))
    }

    /// The file in which the output of a trial is kept for people.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }
}

/// Removes files that tests or earlier trees have left.
fn prune(folder: &Path, root: &Path, files: &BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            prune(&path, root, files)?;
        } else if !path
            .strip_prefix(root)
            .is_ok_and(|name| files.contains(&*name.to_string_lossy()))
        {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Writes the file `to` if it differs, and returns its contents.
pub(crate) fn renew(from: &Path, to: &Path) -> io::Result<Vec<u8>> {
    let wanted = fs::read(from)?;
    if fs::read(to).is_ok_and(|there| there == wanted) {
        return Ok(wanted);
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(to, &wanted)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    Ok(wanted)
}

/// Returns true if a file affects neither builds nor tests.
fn is_beside(name: &str) -> bool {
    let is_page = name.starts_with("tests/") && name.ends_with(".md");
    is_page || name.starts_with("tests/mutations/") || name.starts_with("xtask/")
}

const TREE: &str = "tree";

#[cfg(test)]
mod tests {
    use super::*;

    fn mutation(find: &str) -> Mutation {
        Mutation {
            name: "one".into(),
            file: "a/b.rs".into(),
            find: find.into(),
            replace: "true".into(),
            why: "A guard.".into(),
            rows: Vec::new(),
            tests: String::new(),
            slow: false,
            survives: None,
        }
    }

    /// Each trial has its own mutation and no other, and no files that were edited or left behind
    /// meanwhile.
    #[test]
    fn a_trial_is_of_the_tree_as_it_was_with_one_mutation() {
        let root = std::env::temp_dir().join(format!("xtask-copy-{}", std::process::id()));
        let source = root.join("a/b.rs");
        let copied = root.join("mutate/tree/a/b.rs");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(&source, "if one { two }").unwrap();
        let mut copy = Copy::of(&root, root.join("mutate"), ["a/b.rs".to_owned()].into()).unwrap();
        let there = || fs::read_to_string(&copied).unwrap();

        copy.mutate(&mutation("one")).unwrap();
        assert_eq!(there(), "if true { two }");
        fs::write(&source, "edited").unwrap();
        fs::write(copied.with_file_name("left"), "").unwrap();
        copy.mutate(&mutation("two")).unwrap();
        assert_eq!(there(), "if one { true }");
        assert!(!copied.with_file_name("left").exists());
        copy.restore().unwrap();
        assert_eq!(there(), "if one { two }");
        assert!(
            copy.mutate(&mutation("edited"))
                .unwrap_err()
                .contains("occurs 0 times in a/b.rs")
        );
        fs::remove_dir_all(root).unwrap();
    }
}
