//! Writes `tests/FAULTS.md`.

use std::fmt::Write as _;

use super::{Faults, REASONS};
use crate::markdown;
use crate::rows::{self, Row};

impl Faults {
    pub(super) fn page(&self) -> String {
        let mut page = OPENING.replace("{REASONS}", REASONS);
        for (letter, title, rows) in rows::sections() {
            _ = write!(page, "\n## {letter}: {title}\n\n{HEAD}");
            for (row, fault) in rows {
                page += &self.line(row, fault);
            }
        }
        page
    }

    /// A row of a table. If there are several tests, their names and their expectations are in the
    /// same order.
    fn line(&self, row: Row, fault: &str) -> String {
        let shown: Vec<_> = self.showing(row).collect();
        let expected: Vec<_> = shown.iter().map(|test| test.expected.as_str()).collect();
        let tests: Vec<_> = shown.iter().map(|test| format!("`{test}`")).collect();
        let mutations = self.mutations_of(row);
        let mutations: Vec<_> = mutations.map(|name| format!("`{name}`")).collect();
        let reason = match (tests.is_empty(), self.reason(row).map(str::trim)) {
            (true, None) => "not shown".to_owned(),
            (true, Some(why)) => format!("does not apply: {why}"),
            (false, None) => String::new(),
            (false, Some(why)) => format!("the rest does not apply: {why}"),
        };
        markdown::row([
            &row.to_string(),
            fault,
            &expected.join("<br>"),
            &tests.join("<br>"),
            &mutations.join("<br>"),
            &reason,
        ])
    }
}

const OPENING: &str = "\
# Faults

Faults, the expected behaviour, and the tests that show it.

`cargo xtask faults` writes this page from the names of tests (`h01_…` for H1), the first sentences of their
documentation, `{REASONS}` and `tests/mutations`. `cargo xtask ci` fails unless every row has a test that
is run or a reason. A passing test alone proves little, so each row with tests names mutations that violate it: changes
that `cargo xtask mutate` makes in the product, and that a test of the row has to catch.
";

const HEAD: &str =
    "| row | fault | expected | shown by | mutations | remarks |\n|---|---|---|---|---|---|\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Mutation;

    #[test]
    fn a_line_names_tests_and_mutations_of_its_row() {
        let text = "/// Either | or.\n#[test]\nfn h01_one() {}\n#[test]\nfn h01_two() {}\n#[test]\nfn h02_three() {}\n";
        let reasons = [("H2", "Not over\nHTTP/2."), ("H3", "None.")]
            .map(|(row, why)| (row.to_owned(), why.to_owned()));
        let mutation = |name: &str, row: &str| {
            let mut mutation = Mutation::default();
            mutation.name = name.into();
            mutation.rows = vec![row.into()];
            mutation
        };
        let faults = Faults {
            shown: rows::tests("a.rs", text),
            reasons: reasons.into(),
            mutations: vec![mutation("first", "H1"), mutation("second", "H1")],
        };
        let line = |number| {
            faults.line(
                Row {
                    section: 'H',
                    number,
                },
                "A fault",
            )
        };
        assert_eq!(
            [line(1), line(2), line(3), line(4)],
            [
                "| H1 | A fault | Either \\| or.<br>Two. | `a.rs::h01_one`<br>`a.rs::h01_two` | `first`<br>`second` |  |\n",
                "| H2 | A fault | Three. | `a.rs::h02_three` |  | the rest does not apply: Not over HTTP/2. |\n",
                "| H3 | A fault |  |  |  | does not apply: None. |\n",
                "| H4 | A fault |  |  |  | not shown |\n",
            ]
        );
    }

    #[test]
    fn the_page_has_every_row_once() {
        let page = Faults::default().page();
        for row in rows::all() {
            assert_eq!(page.matches(&format!("\n| {row} | ")).count(), 1, "{row}");
        }
    }
}
