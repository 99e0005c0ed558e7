//! The long tier: `cargo xtask ci --tier long`.
//!
//! It has the checks that take too long for every change. Each part writes a row in `tests/LONG.md`
//! with the commit that it ran on. The short tier fails when too many commits have changed the
//! part's area since, and runs one small share of a part each time, chosen by the seed.

mod page;
mod parts;

use std::process::Command;

use self::page::{Page, Row};
use self::parts::{PARTS, Part, SHARES};
use crate::outcome::{Outcome, no_problems};
use crate::times::{self, Step};
use crate::{fuzz, history, process, seed, workspace};

/// The parts of the long tier as steps, each of which writes its row.
pub(crate) fn steps() -> Vec<Step> {
    PARTS
        .iter()
        .map(|part| Step::new(part.name, part.about, || record(part)))
        .collect()
}

/// Checks that no row is too old for the changes since, and that no fuzz target has a finding that
/// was not tried again.
pub(crate) fn check_age() -> Outcome {
    let page = Page::parse(&workspace::read(PATH)?)?;
    let (mut found, mut soon) = (Vec::new(), Vec::new());
    for part in &PARTS {
        match commits_left(part, page.row(part.name), history::changes_since)? {
            Ok(left) if left < SOON => {
                soon.push(format!("{} (after {left} more commits)", part.name));
            }
            Ok(_) => {}
            Err(problem) => found.push(problem),
        }
    }
    found.extend(fuzz::problems()?);
    no_problems(PATH, &found)?;
    println!("{} parts of the long tier are recent enough", PARTS.len());
    if !soon.is_empty() {
        println!("too old soon: {}", soon.join(", "));
    }
    Ok(())
}

/// A part with fewer commits left than this is named as too old soon.
const SOON: usize = 15;

/// Returns how many more commits may change the area of a part until its row is too old, or the
/// problem of the row, in one sentence. `changes` counts the commits that have changed an area since
/// another commit.
fn commits_left(
    part: &Part,
    row: Option<&Row>,
    changes: impl Fn(&str, &[&str]) -> Outcome<usize>,
) -> Outcome<Result<usize, String>> {
    let Part {
        name, area, most, ..
    } = part;
    let found = match row {
        None => "has no row".to_owned(),
        Some(Row { result, commit, .. }) if result.starts_with("FAILED") => {
            format!("failed on {commit}")
        }
        Some(Row { commit, .. }) => match changes(commit, area)? {
            commits if commits > *most => {
                format!(
                    "last ran on {commit}, and {commits} commits have changed its area since ({most} are allowed)"
                )
            }
            commits => return Ok(Ok(most - commits)),
        },
    };
    Ok(Err(format!(
        "'{name}' {found}: run `cargo xtask ci --tier long --only {name}`"
    )))
}

/// Runs a share of one part, chosen by the seed, within minutes.
pub(crate) fn rotating() -> Outcome {
    let seed = seed::current()?;
    let (name, share) = SHARES[(seed % SHARES.len() as u64) as usize];
    println!("a share of '{name}', by the seed {seed}");
    share(seed)?;
    println!("the share of '{name}' passed");
    Ok(())
}

/// Runs a part and writes its row, also when it fails.
fn record(part: &Part) -> Outcome {
    let commit = committed(part)?;
    let begun = times::now();
    let outcome = (part.run)();
    // Without the path of this machine, which says nothing to anybody else.
    let root = format!("{}/", workspace::root().display());
    let failed = |error: &String| format!("FAILED: {}", error.replace(&root, ""));
    let result = outcome.as_ref().map_or_else(failed, Clone::clone);
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    // In UTC, as `2026-01-31`.
    let date = process::output(Command::new("date").args(["-u", "+%F"]))?
        .trim()
        .to_owned();
    let mut page = Page::parse(&workspace::read(PATH).unwrap_or_default())?;
    page.put(Row {
        part: part.name.to_owned(),
        result,
        commit,
        date,
        minutes: format!("{minutes:.1}"),
    });
    workspace::write(PATH, page.text(&PARTS.map(|part| part.name)))?;
    outcome.map(drop)
}

/// The current commit; an error if the part's area has uncommitted changes.
fn committed(part: &Part) -> Outcome<String> {
    let mut status = workspace::git(&["status", "--porcelain", "--untracked-files=all", "--"]);
    let changed = process::output(status.args(part.area))?;
    // The pages that the parts themselves write.
    if let Some(line) = changed.lines().find(|line| !line.ends_with(".md")) {
        return Err(format!(
            "'{}' runs on a commit, but this is not committed: {}",
            part.name,
            line.trim()
        ));
    }
    workspace::commit()
}

const PATH: &str = "tests/LONG.md";

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Part = Part {
        name: "soak",
        about: "",
        area: &["crates/sse", "Cargo.lock"],
        most: 1,
        run: || Ok(String::new()),
    };

    fn row(result: &str) -> Row {
        let [part, commit, date, minutes] =
            ["soak", "0123456", "2026-01-31", "1.0"].map(str::to_owned);
        Row {
            part,
            result: result.to_owned(),
            commit,
            date,
            minutes,
        }
    }

    #[test]
    fn a_row_is_too_old_past_what_its_part_allows() {
        let left = |commits| commits_left(&PART, Some(&row("passed")), |_, _| Ok(commits)).unwrap();
        assert_eq!((left(0), left(1)), (Ok(1), Ok(0)));
        assert_eq!(
            left(2).unwrap_err(),
            "'soak' last ran on 0123456, and 2 commits have changed its area since (1 are allowed): run `cargo \
             xtask ci --tier long --only soak`"
        );
    }

    #[test]
    fn a_missing_or_failed_row_is_a_problem() {
        let problem = |row: Option<&Row>| {
            let left = commits_left(&PART, row, |_, _| Ok(0));
            left.unwrap().unwrap_err()
        };
        assert!(problem(None).contains("'soak' has no row"));
        assert!(problem(Some(&row("FAILED: no"))).contains("'soak' failed on 0123456"));
    }
}
