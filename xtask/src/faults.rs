//! `cargo xtask faults`: the list of what may go wrong, and beside each fault the tests that show what happens then.
//!
//! A test shows a row by the beginning of its name: `h01_…` shows H1, and `c03_u19_…` shows C3 and U19. What is owed is
//! the first sentence of its documentation. Rows that do not concern this product have their reason in
//! `tests/faults/reasons.toml`, as may rows that do so in part.

mod page;
mod rows;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;

use self::rows::Row;
use self::scan::Shown;
use crate::passed::{self, Passed};
use crate::{Outcome, workspace};

/// Writes the page, or with `--check` does what [`check`] does.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    match args {
        [] => write(),
        [flag] if flag == "--check" => check(),
        [other, ..] => Err(format!("unexpected {other:?}: expected [--check]")),
    }
}

/// Holds the list against the last run of `cargo xtask test`: every row has tests, which all passed, or a reason, and
/// the page says so.
pub(crate) fn check() -> Outcome {
    let faults = Faults::read()?;
    let mut found = faults.problems(&passed::last()?);
    if fs::read_to_string(workspace::root().join(PAGE)).ok().is_none_or(|page| page != faults.page()) {
        found.push(format!("{PAGE} is not what the tests say: run `cargo xtask faults`"));
    }
    if found.is_empty() {
        println!("{} faults are shown or do not apply", rows::all().count());
        return Ok(());
    }
    Err(format!("faults:\n  {}", found.join("\n  ")))
}

fn write() -> Outcome {
    let faults = Faults::read()?;
    fs::write(workspace::root().join(PAGE), faults.page()).map_err(|error| format!("{PAGE}: {error}"))?;
    match faults.missing() {
        Some(missing) => println!("{PAGE} is written; {missing}"),
        None => println!("{PAGE} is written; it is complete"),
    }
    Ok(())
}

/// What the repository says about the rows.
#[derive(Default)]
struct Faults {
    shown: Vec<Shown>,
    reasons: BTreeMap<String, String>,
}

impl Faults {
    fn read() -> Outcome<Self> {
        let root = workspace::root();
        let mut shown = Vec::new();
        for name in workspace::files()?.iter().filter(|name| may_hold_tests(name)) {
            // Deleted but not yet committed: nothing to read.
            let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
            shown.extend(scan::tests(name, &text));
        }
        let text = fs::read_to_string(root.join(REASONS)).map_err(|error| format!("{REASONS}: {error}"))?;
        let reasons = toml::from_str(&text).map_err(|error| format!("{REASONS}: {error}"))?;
        Ok(Self { shown, reasons })
    }

    /// What is wrong, each in a sentence; `passed` are the tests of the last run.
    fn problems(&self, passed: &BTreeSet<Passed>) -> Vec<String> {
        let mut found: Vec<_> = self.missing().into_iter().collect();
        for shown in &self.shown {
            let strangers = shown.rows.iter().filter(|row| !row.is_listed());
            found.extend(strangers.map(|row| format!("{shown}: {row} is no row of the list")));
            if !passed.iter().any(|passed| passed.is(&shown.file, &shown.name)) {
                found.push(format!("{shown} has not passed in the last run of `cargo xtask test`"));
            }
        }
        for (row, why) in &self.reasons {
            if !rows::all().any(|listed| listed.to_string() == *row) {
                found.push(format!("{REASONS}: {row:?} is no row of the list"));
            }
            if why.trim().is_empty() {
                found.push(format!("{REASONS}: {row} has no reason"));
            }
        }
        found
    }

    /// The rows about which nothing is said, in one sentence.
    fn missing(&self) -> Option<String> {
        let is_missing = |row: &Row| self.reason(*row).is_none() && self.showing(*row).next().is_none();
        let missing: Vec<_> = rows::all().filter(is_missing).map(|row| row.to_string()).collect();
        (!missing.is_empty())
            .then(|| format!("{} rows have neither test nor reason: {}", missing.len(), missing.join(" ")))
    }

    fn showing(&self, row: Row) -> impl Iterator<Item = &Shown> {
        self.shown.iter().filter(move |shown| shown.rows.contains(&row))
    }

    fn reason(&self, row: Row) -> Option<&str> {
        self.reasons.get(&row.to_string()).map(String::as_str)
    }
}

/// Whether a file is where the tests of the product are.
fn may_hold_tests(name: &str) -> bool {
    let in_crate = |rest: &str| rest.split('/').nth(1).is_some_and(|folder| folder == "src" || folder == "tests");
    name.ends_with(".rs") && (name.starts_with("tests/") || name.strip_prefix("crates/").is_some_and(in_crate))
}

const PAGE: &str = "tests/FAULTS.md";
const REASONS: &str = "tests/faults/reasons.toml";

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row has a reason but those of `tests`, which are shown by a test of this name each.
    fn faults(tests: &[&str]) -> Faults {
        let text: String = tests.iter().map(|name| format!("#[test]\nfn {name}() {{}}\n")).collect();
        let shown = scan::tests("tests/faults/a.rs", &text);
        let is_shown = |row: &Row| shown.iter().any(|shown: &Shown| shown.rows.contains(row));
        let reasons = rows::all().filter(|row| !is_shown(row)).map(|row| (row.to_string(), "No.".to_owned())).collect();
        Faults { shown, reasons }
    }

    fn passed(paths: &[&str]) -> BTreeSet<Passed> {
        paths.iter().map(|path| Passed::new("tests/faults/main.rs", path)).collect()
    }

    #[test]
    fn a_row_is_shown_by_a_test_that_passed_or_has_a_reason() {
        let faults = faults(&["h01_one", "c03_u19_two"]);
        assert_eq!(faults.problems(&passed(&["a::h01_one", "a::c03_u19_two"])), Vec::<String>::new());
        assert_eq!(
            faults.problems(&passed(&["a::h01_one", "b::c03_u19_two"])),
            ["tests/faults/a.rs::c03_u19_two has not passed in the last run of `cargo xtask test`"]
        );
    }

    #[test]
    fn a_row_may_have_both() {
        let mut faults = faults(&["h01_one"]);
        faults.reasons.insert("H1".into(), "In part.".into());
        assert_eq!(faults.problems(&passed(&["a::h01_one"])), Vec::<String>::new());
    }

    #[test]
    fn rows_with_neither_are_told_together() {
        let mut faults = faults(&[]);
        faults.reasons.retain(|row, _| !["H1", "E6"].contains(&row.as_str()));
        assert_eq!(faults.problems(&passed(&[])), ["2 rows have neither test nor reason: H1 E6"]);
    }

    #[test]
    fn rows_that_are_not_in_the_list_are_told() {
        let mut faults = faults(&["h99_one"]);
        faults.reasons.insert("X1".into(), " ".into());
        assert_eq!(
            faults.problems(&passed(&["a::h99_one"])),
            [
                "tests/faults/a.rs::h99_one: H99 is no row of the list",
                "tests/faults/reasons.toml: \"X1\" is no row of the list",
                "tests/faults/reasons.toml: X1 has no reason"
            ]
        );
    }

    #[test]
    fn tests_are_looked_for_where_the_product_is() {
        assert!(
            ["crates/sse/src/lines.rs", "crates/sse/tests/it/a.rs", "tests/faults/a.rs"]
                .iter()
                .all(|name| may_hold_tests(name))
        );
        assert!(
            !["xtask/src/a.rs", "fuzz/src/lib.rs", "crates/sse/benches/a.rs", "tests/a.md"]
                .iter()
                .any(|name| may_hold_tests(name))
        );
    }
}
