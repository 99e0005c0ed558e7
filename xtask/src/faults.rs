//! `cargo xtask faults`: the list of faults, and beside each the tests that show the expected
//! behaviour.
//!
//! A test names its rows at the beginning of its name: `h01_…` is about H1, and `c03_u19_…` about
//! C3 and U19. The expected behaviour is the first sentence of its documentation. Such a name
//! proves nothing by itself: each row with tests also needs a mutation of the product that violates
//! it (`rows` in `tests/mutations`), which `cargo xtask mutate` tries. Rows that do not concern this
//! product, wholly or in part, have their reason in `tests/faults/reasons.toml`.

mod page;

use std::collections::BTreeMap;

use crate::listed::Program;
use crate::mutate::{self, Mutation};
use crate::outcome::{At as _, Outcome, no_problems};
use crate::rows::{self, Row, Shown, Tests};
use crate::workspace;

/// Checks the list against the tests of `programs`: every row has tests that are all run, or a
/// reason, and the page is up to date.
pub(crate) fn check(programs: &[Program]) -> Outcome {
    let faults = Faults::read()?;
    let is_run = |shown: &Shown| {
        let mut programs = programs.iter();
        programs.any(|program| program.runs(&shown.file, &shown.name))
    };
    let mut found = faults.problems(is_run);
    if workspace::read(PAGE) != Ok(faults.page()) {
        found.push(format!("{PAGE} is out of date: run `cargo xtask faults`"));
    }
    no_problems("faults", &found)?;
    println!("{} rows are shown or do not apply", rows::all().count());
    Ok(())
}

/// Writes the page.
pub(crate) fn write() -> Outcome {
    let faults = Faults::read()?;
    workspace::write(PAGE, faults.page())?;
    faults.lacks().iter().for_each(|lack| println!("{lack}"));
    println!("{PAGE} is written");
    Ok(())
}

/// The tests, reasons and mutations of the rows.
#[derive(Default)]
struct Faults {
    shown: Vec<Shown>,
    reasons: BTreeMap<String, String>,
    mutations: Vec<Mutation>,
}

impl Faults {
    fn read() -> Outcome<Self> {
        let reasons = toml::from_str(&workspace::read(REASONS)?).at(REASONS)?;
        Ok(Self {
            shown: Tests::read()?.0,
            reasons,
            mutations: mutate::all()?,
        })
    }

    /// All problems, each in a sentence.
    fn problems(&self, is_run: impl Fn(&Shown) -> bool) -> Vec<String> {
        let mut found = self.lacks();
        for shown in &self.shown {
            let rows = shown.rows.iter().map(Row::to_string);
            let unknown = rows.filter(|row| !rows::is_row(row));
            found.extend(unknown.map(|row| format!("{shown}: {row} is not a row of the list")));
            if !is_run(shown) {
                found.push(format!("{shown} is ignored, or in no test program"));
            }
        }
        for (row, why) in &self.reasons {
            if !rows::is_row(row) {
                found.push(format!("{REASONS}: {row:?} is not a row of the list"));
            }
            if why.trim().is_empty() {
                found.push(format!("{REASONS}: {row} has no reason"));
            }
        }
        found
    }

    /// The rows that lack something, a sentence for each kind of problem.
    fn lacks(&self) -> Vec<String> {
        let has_tests = |row: &Row| self.showing(*row).next().is_some();
        let is_bare = |row: &Row| !has_tests(row) && self.reason(*row).is_none();
        let is_unbroken = |row: &Row| has_tests(row) && self.mutations_of(*row).next().is_none();
        let bare = lacking("have neither test nor reason", &is_bare);
        let unbroken = lacking("have tests but no mutation", &is_unbroken);
        bare.into_iter().chain(unbroken).collect()
    }

    /// The names of the mutations that violate a row.
    fn mutations_of(&self, row: Row) -> impl Iterator<Item = &str> {
        let row = row.to_string();
        let all = self.mutations.iter();
        let its = all.filter(move |mutation| mutation.rows.contains(&row));
        its.map(|mutation| &*mutation.name)
    }

    fn showing(&self, row: Row) -> impl Iterator<Item = &Shown> {
        let tests = self.shown.iter();
        tests.filter(move |shown| shown.rows.contains(&row))
    }

    fn reason(&self, row: Row) -> Option<&str> {
        self.reasons.get(&row.to_string()).map(String::as_str)
    }
}

/// The rows that lack something, in a sentence if there are any.
fn lacking(what: &str, is_lacking: &dyn Fn(&Row) -> bool) -> Option<String> {
    let rows = rows::all().filter(is_lacking);
    let rows: Vec<_> = rows.map(|row| row.to_string()).collect();
    (!rows.is_empty()).then(|| format!("{} rows {what}: {}", rows.len(), rows.join(" ")))
}

const PAGE: &str = "tests/FAULTS.md";
const REASONS: &str = "tests/faults/reasons.toml";

#[cfg(test)]
mod tests {
    use super::*;

    /// A list in which every row has a reason, except the rows of `tests`. For each name in
    /// `tests`, the list has an empty test of this name, and a mutation.
    fn faults(tests: &[&str]) -> Faults {
        let text: String = tests
            .iter()
            .map(|name| format!("#[test]\nfn {name}() {{}}\n"))
            .collect();
        let shown = rows::tests("tests/faults/a.rs", &text);
        let is_shown = |row: &Row| shown.iter().any(|shown: &Shown| shown.rows.contains(row));
        let reasons = rows::all()
            .filter(|row| !is_shown(row))
            .map(|row| (row.to_string(), "No.".to_owned()))
            .collect();
        let mutation = |shown: &Shown| {
            let mut mutation = Mutation::default();
            mutation.rows = shown.rows.iter().map(ToString::to_string).collect();
            mutation
        };
        Faults {
            mutations: shown.iter().map(mutation).collect(),
            shown,
            reasons,
        }
    }

    /// The tests of these names are run.
    fn run<'a>(names: &'a [&str]) -> impl Fn(&Shown) -> bool + 'a {
        |shown| names.contains(&shown.name.as_str())
    }

    /// A passing empty test proves nothing.
    #[test]
    fn a_row_with_tests_needs_a_mutation() {
        let mut faults = faults(&["h01_one"]);
        faults.mutations[0].rows = vec!["H11".into(), "U1".into()];
        assert_eq!(
            faults.problems(run(&["h01_one"])),
            ["1 rows have tests but no mutation: H1"]
        );
    }

    #[test]
    fn a_row_has_tests_that_are_run_or_a_reason() {
        let faults = faults(&["h01_one", "c03_u19_two"]);
        assert_eq!(
            faults.problems(run(&["h01_one", "c03_u19_two"])),
            Vec::<String>::new()
        );
        assert_eq!(
            faults.problems(run(&["h01_one", "other"])),
            ["tests/faults/a.rs::c03_u19_two is ignored, or in no test program"]
        );
    }

    #[test]
    fn a_row_may_have_both() {
        let mut faults = faults(&["h01_one"]);
        faults.reasons.insert("H1".into(), "In part.".into());
        assert_eq!(faults.problems(run(&["h01_one"])), Vec::<String>::new());
    }

    #[test]
    fn rows_with_neither_are_reported_together() {
        let mut faults = faults(&[]);
        faults
            .reasons
            .retain(|row, _| !["H1", "E6"].contains(&row.as_str()));
        assert_eq!(
            faults.problems(run(&[])),
            ["2 rows have neither test nor reason: H1 E6"]
        );
    }

    #[test]
    fn rows_that_are_not_in_the_list_are_reported() {
        let mut faults = faults(&["h99_one"]);
        faults.reasons.insert("X1".into(), " ".into());
        assert_eq!(
            faults.problems(run(&["h99_one"])),
            [
                "tests/faults/a.rs::h99_one: H99 is not a row of the list",
                "tests/faults/reasons.toml: \"X1\" is not a row of the list",
                "tests/faults/reasons.toml: X1 has no reason"
            ]
        );
    }
}
