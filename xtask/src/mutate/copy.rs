//! The copy of the repository on which trials are made.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::list::Mutation;
use crate::{Outcome, process, workspace};

/// The copy. What did not change keeps its time, so that cargo builds little anew.
pub(super) struct Copy {
    folder: PathBuf,
}

impl Copy {
    /// The copy in `target/mutate`, made if it is absent.
    pub(super) fn open() -> Outcome<Self> {
        Ok(Self { folder: workspace::target()?.join("mutate") })
    }

    /// Makes the copy like the work tree again, with one mutation or none.
    pub(super) fn renew(&self, mutation: Option<&Mutation>) -> Outcome {
        let (from, to) = (workspace::root(), self.folder.join(TREE));
        let files: BTreeSet<_> = workspace::files()?.into_iter().filter(|name| from.join(name).is_file()).collect();
        let told = |error| format!("{}: {error}", to.display());
        fs::create_dir_all(&to).and_then(|()| prune(&to, &to, &files)).map_err(told)?;
        for name in &files {
            let changed = mutation.filter(|mutation| mutation.file == *name);
            renew(&from.join(name), &to.join(name), changed).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }

    /// A cargo command in the copy.
    pub(super) fn cargo(&self, subcommand: &str) -> std::process::Command {
        let mut command = process::cargo(subcommand);
        command.current_dir(self.folder.join(TREE)).env("CARGO_TARGET_DIR", self.folder.join("target"));
        // A snapshot that differs is a failure and no proposal.
        command.env("INSTA_UPDATE", "no");
        command
    }

    /// Where the output of a trial is kept for people.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }
}

/// Takes away what tests or earlier trees have left.
fn prune(folder: &Path, root: &Path, files: &BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            prune(&path, root, files)?;
        } else if !path.strip_prefix(root).is_ok_and(|name| files.contains(&*name.to_string_lossy())) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Writes the file `to` if it is not what it must be.
fn renew(from: &Path, to: &Path, mutation: Option<&Mutation>) -> io::Result<()> {
    let mut wanted = fs::read(from)?;
    if let Some(Mutation { find, replace, .. }) = mutation {
        wanted = String::from_utf8_lossy(&wanted).replacen(find, replace, 1).into_bytes();
    }
    if fs::read(to).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(to, wanted)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}

const TREE: &str = "tree";
