//! A copy of the repository, in which mutations are planted.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::{process, seed, workspace};

/// The work tree at the time when the copy was opened: later edits have no effect on any trial.
pub(crate) struct Copy {
    /// The folder of the copy, its builds and results.
    pub(crate) folder: PathBuf,
    git_folder: String,
    /// The hash of the tree.
    tree: String,
}

impl Copy {
    /// Makes the copy in this folder of the target folder identical to the work tree.
    pub(crate) fn open(folder: &str) -> Outcome<Self> {
        let mut git_folder = workspace::git("rev-parse --absolute-git-dir");
        let copy = Self {
            folder: workspace::target()?.join(folder),
            git_folder: process::output(&mut git_folder)?.trim().to_owned(),
            tree: seed::tree()?,
        };
        let sources = copy.sources();
        fs::create_dir_all(&sources).at(&sources)?;
        copy.restore()?;
        Ok(copy)
    }

    /// Reverts all changes, and removes files that tests have created. Other files keep their
    /// modification time, so that cargo rebuilds little.
    pub(crate) fn restore(&self) -> Outcome {
        self.git(&["read-tree", "--reset", "-u", &self.tree])?;
        self.git(&["clean", "-ffdxq"])
    }

    /// Runs git in the copy, with an index of its own.
    fn git(&self, args: &[&str]) -> Outcome {
        let mut git = Command::new("git");
        git.current_dir(self.sources())
            .env("GIT_DIR", &self.git_folder)
            .env("GIT_WORK_TREE", self.sources())
            .env("GIT_INDEX_FILE", self.folder.join("index"));
        process::run(git.args(args))
    }

    /// Lets a cargo command work in the copy.
    pub(crate) fn enter(&self, command: &mut Command) {
        command.current_dir(self.sources());
        command.env("CARGO_TARGET_DIR", self.folder.join("target"));
        // Only the time to compile and link a small change matters.
        command.env("CARGO_PROFILE_DEV_DEBUG", "none");
        command.env("CARGO_INCREMENTAL", "1");
    }

    /// The folder of the sources.
    pub(crate) fn sources(&self) -> PathBuf {
        self.folder.join("tree")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restoring_reverts_changes_and_removes_leftovers() {
        let folder = std::env::temp_dir().join(format!("xtask-copy-{}", std::process::id()));
        let git = |args: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a", "-C"]);
            process::output(git.arg(folder.join("from")).args(args)).unwrap()
        };
        fs::create_dir_all(folder.join("from/a")).unwrap();
        fs::create_dir_all(folder.join("tree")).unwrap();
        fs::write(folder.join("from/a/b.rs"), "one").unwrap();
        git(&["init", "--quiet"]);
        git(&["add", "."]);
        let copy = Copy {
            git_folder: folder.join("from/.git").display().to_string(),
            tree: git(&["write-tree"]).trim().to_owned(),
            folder: folder.clone(),
        };
        let copied = folder.join("tree/a/b.rs");
        copy.restore().unwrap();
        assert_eq!(fs::read_to_string(&copied).unwrap(), "one");
        fs::write(folder.join("from/a/b.rs"), "an edit of the work tree").unwrap();
        fs::write(&copied, "a mutation").unwrap();
        fs::write(folder.join("tree/left"), "").unwrap();
        copy.restore().unwrap();
        assert_eq!(fs::read_to_string(&copied).unwrap(), "one");
        assert!(!folder.join("tree/left").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
