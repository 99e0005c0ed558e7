//! The long tier: `cargo xtask ci --tier long`.
//!
//! It has the checks that take too long for every change. Each part writes a row in `tests/LONG.md` with the commit
//! that it ran on. The short tier fails when too many commits have changed the part's area since, and runs one small
//! share of a part each time, chosen by the seed.

mod age;
mod page;
mod parts;

use self::page::{Page, Row};
use self::parts::{PARTS, Part, SHARES};
use crate::outcome::{Outcome, no_problems};
use crate::step::Step;
use crate::{process, seed, times, workspace};

/// The parts of the long tier as steps, each of which writes its row.
pub(crate) fn steps() -> Vec<Step> {
    PARTS.iter().map(|part| Step::new(part.name, part.about, || record(part))).collect()
}

/// Checks that no row is too old for the changes since.
pub(crate) fn check_age() -> Outcome {
    let page = Page::parse(&workspace::read(PATH)?)?;
    let mut found = Vec::new();
    for part in &PARTS {
        found.extend(age::problem(part, page.row(part.name))?);
    }
    no_problems(PATH, &found)?;
    println!("{} parts of the long tier are recent enough", PARTS.len());
    Ok(())
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
    let mut page = workspace::read(PATH).map_or_else(|_| Ok(Page::default()), |text| Page::parse(&text))?;
    page.put(Row { part: part.name.to_owned(), result, commit, date: today()?, minutes: format!("{minutes:.1}") });
    workspace::write(PATH, page.text(&PARTS.map(|part| part.name)))?;
    outcome.map(drop)
}

/// The current commit; an error if the part's area has uncommitted changes.
fn committed(part: &Part) -> Outcome<String> {
    let mut status = workspace::git(&["status", "--porcelain", "--untracked-files=all", "--"]);
    let changed = process::output(status.args(part.area))?;
    // The pages that the parts themselves write.
    if let Some(line) = changed.lines().find(|line| !line.ends_with(".md")) {
        return Err(format!("'{}' runs on a commit, but this is not committed: {}", part.name, line.trim()));
    }
    workspace::commit()
}

/// The date in UTC, as `2026-01-31`.
fn today() -> Outcome<String> {
    let mut date = std::process::Command::new("date");
    Ok(process::output(date.args(["-u", "+%F"]))?.trim().to_owned())
}

const PATH: &str = "tests/LONG.md";
