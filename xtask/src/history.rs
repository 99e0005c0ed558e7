//! Counts the changes of a part of the repository since a commit.

use crate::outcome::Outcome;
use crate::{process, workspace};

/// The number of commits since `commit` that have changed something below `area`, which are files and folders. A file
/// that was only moved does not count, nor do pages.
///
/// # Errors
///
/// If the commit is not in the history of the work tree.
pub(crate) fn changes_since(commit: &str, area: &[&str]) -> Outcome<usize> {
    Ok(changes(&log(commit)?, area))
}

/// The files that each commit since then has changed.
fn log(commit: &str) -> Outcome<String> {
    let range = format!("{commit}..HEAD");
    let mut log = workspace::git(&["log", "--no-merges", "-M100%", "--name-status", "--format=commit %h", &range]);
    process::output(&mut log)
        .map_err(|error| format!("{error}: the commit {commit} is not in this history, which may be shallow"))
}

/// The number of commits of a log that have changed something below `area`.
fn changes(log: &str, area: &[&str]) -> usize {
    let (mut count, mut counted) = (0, true);
    for line in log.lines() {
        if line.starts_with("commit ") {
            counted = false;
        } else if !counted && touches(line, area) {
            counted = true;
            count += 1;
        }
    }
    count
}

/// Returns true if a line such as `M<tab>crates/sse/src/lib.rs` is a change below `area`.
fn touches(line: &str, area: &[&str]) -> bool {
    let Some((status, files)) = line.split_once('\t') else { return false };
    let is_below = |file: &str| {
        area.iter().any(|top| file.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    status != "R100" && files.split('\t').any(|file| is_below(file) && !file.ends_with(".md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: &[&str] = &["crates/sse", "Cargo.lock"];
    const LOG: &str = "\
commit aaa

M\tcrates/sse/src/lib.rs
A\tcrates/sse/src/new.rs
commit bbb

R100\tcrates/old/a.rs\tcrates/sse/src/a.rs
M\tcrates/sse_other/src/lib.rs
M\tcrates/sse/README.md
commit ccc

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
        assert!(log("0000000000000").unwrap_err().contains("is not in this history"));
    }
}
