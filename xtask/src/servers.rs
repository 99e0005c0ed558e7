//! Checks the list of the behaviour of real servers, `tests/SERVERS.md`.
//!
//! Each row of the page names the tests that show its rule: a test as `FILE::NAME`, or a case of
//! `tests/dialects/cases` as `SERVER/CASE`. The program `dialects` requires that clients get the
//! answers that the case owes them.

use std::collections::{BTreeMap, BTreeSet};

use crate::listed::Program;
use crate::markdown;
use crate::outcome::{Outcome, no_problems};
use crate::workspace;

/// Checks the page against the tests of `programs`: every row has tests or cases, and all of
/// them are run.
pub(crate) fn check(programs: &[Program]) -> Outcome {
    let page = Page::read()?;
    let mut found = page.problems();
    let is_run = |test: &str| {
        let (file, name) = test.split_once("::").unwrap_or_default();
        programs.iter().any(|program| program.runs(file, name))
    };
    let tests = page.tests().chain([CASES_TEST]);
    let missing = tests.filter(|test| !is_run(test));
    found.extend(missing.map(|test| format!("{PAGE}: {test} is ignored, or in no test program")));
    no_problems("servers", &found)?;
    println!("{} rows are shown", page.rows.len());
    Ok(())
}

/// The rows of the page, and the cases that they may name.
struct Page {
    /// The row, its rule, and the tests and cases that show it.
    rows: Vec<[String; 3]>,
    cases: BTreeMap<String, String>,
}

impl Page {
    fn read() -> Outcome<Self> {
        let rows = markdown::rows(&workspace::read(PAGE)?)?;
        let cases = workspace::texts(|name| name.starts_with(CASES))?;
        let cases = cases.into_iter().collect();
        Ok(Self { rows, cases })
    }

    /// The rows without tests, the cases that do not exist, and rules of a vendor without
    /// their source, each in a sentence.
    fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut known = BTreeSet::new();
        for [row, rule, shown] in &self.rows {
            if !known.insert(row) {
                found.push(format!("{PAGE}: {row} is there twice"));
            }
            if names(shown).next().is_none() {
                found.push(format!("{PAGE}: {row} has no test"));
            }
            if row.starts_with(VENDORS) && !rule.contains("](https://") {
                found.push(format!("{PAGE}: {row} has no source"));
            }
            let absent = names(shown).filter(|name| !self.exists(name));
            found.extend(absent.map(|name| format!("{PAGE}: {row} names {name}, which is absent")));
        }
        found
    }

    fn tests(&self) -> impl Iterator<Item = &str> {
        let shown = self.rows.iter().flat_map(|[.., shown]| names(shown));
        shown.filter(|name| name.contains("::"))
    }

    /// Returns true for a case that clients are owed; whether tests exist is checked elsewhere.
    fn exists(&self, name: &str) -> bool {
        let case = self.cases.get(&format!("{CASES}{name}.toml"));
        name.contains("::") || case.is_some_and(|text| !text.contains("level = \"soft\""))
    }
}

/// The names in a cell. Each name is code, between backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

const PAGE: &str = "tests/SERVERS.md";
const CASES: &str = "tests/dialects/cases/";
/// The test of all cases.
const CASES_TEST: &str = "tests/dialects/main.rs::every_case_comes_through_as_owed";
/// The beginning of rows about a rule in the documentation of a vendor.
const VENDORS: &str = "rule-";

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &[[&str; 3]]) -> Page {
        let cases = [
            ("tests/dialects/cases/b/c.toml", "server = \"b\"\n"),
            ("tests/dialects/cases/b/d.toml", "level = \"soft\"\n"),
        ];
        Page {
            rows: rows.iter().map(|row| row.map(str::to_owned)).collect(),
            cases: cases.map(|(name, text)| (name.into(), text.into())).into(),
        }
    }

    #[test]
    fn every_row_names_tests_or_cases_that_exist() {
        let good = page(&[
            ["form-1", "A", "`tests/a.rs::one` `b/c`"],
            ["rule-1", "[B](https://example.com)", "`b/c`"],
        ]);
        assert_eq!(good.problems(), [""; 0]);
        assert_eq!(good.tests().collect::<Vec<_>>(), ["tests/a.rs::one"]);
        let bad = page(&[
            ["form-1", "A", ""],
            ["form-1", "B", "`b/d` `b/e`"],
            ["rule-1", "C", "`b/c`"],
        ]);
        assert_eq!(
            bad.problems(),
            [
                "tests/SERVERS.md: form-1 has no test",
                "tests/SERVERS.md: form-1 is there twice",
                "tests/SERVERS.md: form-1 names b/d, which is absent",
                "tests/SERVERS.md: form-1 names b/e, which is absent",
                "tests/SERVERS.md: rule-1 has no source",
            ]
        );
    }

    #[test]
    fn the_page_names_existing_cases() {
        assert_eq!(Page::read().map(|page| page.problems()), Ok(Vec::new()));
    }
}
