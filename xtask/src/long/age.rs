//! Decides whether the result of a part is recent enough, by the number of commits that have changed its area since.

use super::page::Row;
use super::parts::Part;
use crate::outcome::Outcome;
use crate::{process, workspace};

/// The problem of a part's row, in one sentence.
pub(super) fn problem(part: &Part, row: Option<&Row>) -> Outcome<Option<String>> {
    let Some(row) = row else { return Ok(Some(format!("'{}' has no row: {}", part.name, advice(part)))) };
    if row.result.starts_with("FAILED") {
        return Ok(Some(format!("'{}' failed on {}: {}", part.name, row.commit, advice(part))));
    }
    Ok(judge(part, row, changes(&log(&row.commit)?, part.area)))
}

/// Returns the problem if a row is too old for this number of commits in its area.
fn judge(part: &Part, row: &Row, commits: usize) -> Option<String> {
    (commits > part.most).then(|| {
        format!(
            "'{}' last ran on {}, and {commits} commits have changed its area since ({} are allowed): {}",
            part.name,
            row.commit,
            part.most,
            advice(part)
        )
    })
}

fn advice(part: &Part) -> String {
    format!("run `cargo xtask ci --tier long --only {}`", part.name)
}

/// The files that each commit since then has changed.
fn log(commit: &str) -> Outcome<String> {
    let range = format!("{commit}..HEAD");
    let mut log = workspace::git(&["log", "--no-merges", "-M100%", "--name-status", "--format=commit %h", &range]);
    process::output(&mut log).map_err(|error| {
        format!("{error}: the commit {commit} of tests/LONG.md is not in this history, which may be shallow")
    })
}

/// The number of commits of a log that have changed something below `area`. A file that was only moved does not
/// count.
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

    const PART: Part =
        Part { name: "soak", about: "", area: &["crates/sse", "Cargo.lock"], most: 1, run: || Ok(String::new()) };
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

    fn row(result: &str) -> Row {
        let [part, commit, date, minutes] = ["soak", "0123456", "2026-01-31", "1.0"].map(str::to_owned);
        Row { part, result: result.to_owned(), commit, date, minutes }
    }

    #[test]
    fn commits_in_the_area_count_once_and_moves_do_not() {
        assert_eq!(changes(LOG, PART.area), 2);
        assert_eq!(changes(LOG, &["crates"]), 3);
        assert_eq!(changes(LOG, &["Cargo.lock"]), 0);
        assert_eq!(changes("", PART.area), 0);
    }

    #[test]
    fn a_row_is_too_old_past_what_its_part_allows() {
        assert_eq!(judge(&PART, &row("passed"), 1), None);
        assert_eq!(
            judge(&PART, &row("passed"), 2).unwrap(),
            "'soak' last ran on 0123456, and 2 commits have changed its area since (1 are allowed): run `cargo \
             xtask ci --tier long --only soak`"
        );
    }

    #[test]
    fn a_missing_or_failed_row_is_a_problem() {
        assert!(problem(&PART, None).unwrap().unwrap().contains("'soak' has no row"));
        assert!(problem(&PART, Some(&row("FAILED: no"))).unwrap().unwrap().contains("'soak' failed on 0123456"));
    }

    #[test]
    fn a_commit_of_another_history_is_an_error() {
        assert!(log("0000000000000").unwrap_err().contains("is not in this history"));
    }
}
