//! Counts the changes of a part of the repository since a commit.

use std::path::Path;
use std::process::Stdio;

use crate::outcome::Outcome;
use crate::{process, workspace};

/// The number of commits since `commit` that have changed something below `area`, which are files
/// and folders. A file that was only moved does not count, nor do pages. It is an error if the
/// commit is not in the history of the work tree.
pub(crate) fn changes_since(commit: &str, area: &[&str]) -> Outcome<usize> {
    let range = format!("{commit}..HEAD");
    let mut log = workspace::git(&[
        "log",
        "--no-merges",
        "-M100%",
        "--name-status",
        "--format=%x00",
        &range,
    ]);
    let log = process::output(&mut log).map_err(|error| {
        format!("{error}: the commit {commit} is not in this history, which may be shallow")
    })?;
    Ok(changes(&log, area))
}

/// Returns true if the commit is in the history of the work tree, which it no longer is when it was
/// rewritten.
pub(crate) fn contains(commit: &str) -> bool {
    // Silent, since git also complains about a commit that it does not know.
    workspace::git(&["merge-base", "--is-ancestor", commit, "HEAD"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The number of commits of a log that have changed something below `area`; a zero byte begins each
/// of them.
fn changes(log: &str, area: &[&str]) -> usize {
    log.split('\0')
        .filter(|commit| commit.lines().any(|line| touches(line, area)))
        .count()
}

/// Returns true if a line such as `M<tab>crates/sse/src/lib.rs` is a change below `area`.
fn touches(line: &str, area: &[&str]) -> bool {
    let Some((status, files)) = line.split_once('\t') else {
        return false;
    };
    let is_below = |file: &str| area.iter().any(|top| Path::new(file).starts_with(top));
    status != "R100"
        && files
            .split('\t')
            .any(|file| is_below(file) && !file.ends_with(".md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: &[&str] = &["crates/sse", "Cargo.lock"];
    const LOG: &str = "\
\0

M\tcrates/sse/src/lib.rs
A\tcrates/sse/src/new.rs
\0

R100\tcrates/old/a.rs\tcrates/sse/src/a.rs
M\tcrates/sse_other/src/lib.rs
M\tcrates/sse/README.md
\0

R097\tcrates/old/b.rs\tcrates/sse/src/b.rs
";

    #[test]
    fn commits_in_the_area_count_once_and_moves_do_not() {
        assert_eq!(changes(LOG, AREA), 2);
        assert_eq!(changes(LOG, &["crates"]), 3);
        assert_eq!(changes(LOG, &["Cargo.lock"]), 0);
        assert_eq!(changes("", AREA), 0);
    }

    #[test]
    fn a_commit_of_another_history_is_an_error() {
        assert!(
            changes_since("0000000000000", AREA)
                .unwrap_err()
                .contains("is not in this history")
        );
        assert!(!contains("0000000000000"));
        assert!(contains("HEAD"));
    }
}
