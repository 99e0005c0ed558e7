//! Writes `tests/FAULTS.md`.

use std::fmt::Write as _;

use super::{Faults, Proof, REASONS};
use crate::markdown::{self, code};
use crate::rows::{self, Row};

impl Faults {
    pub(super) fn page(&self) -> String {
        let mut page = OPENING.replace("{REASONS}", REASONS);
        page += &self.counts();
        for section in rows::sections() {
            _ = write!(page, "\n## {}: {}\n\n{HEAD}", section.letter, section.title);
            for (row, fault) in section.rows {
                page += &self.line(row, fault);
            }
        }
        page
    }

    /// The number of rows that are shown, for the top of the page.
    fn counts(&self) -> String {
        let rows: Vec<_> = rows::all().filter(|row| self.has_tests(*row)).collect();
        let count = |proof| rows.iter().filter(|row| self.proof(**row) == proof).count();
        let shown = count(Proof::Caught);
        let missed = count(Proof::Missed);
        let missed = if missed == 0 {
            String::new()
        } else {
            format!(", and {missed} have one that they did not catch")
        };
        format!(
            "\nOf {} rows with tests {shown} are shown by a mutation that they caught; {} have none yet{missed}.\n",
            rows.len(),
            count(Proof::Untried)
        )
    }

    /// A row of a table. If there are several tests, their names and their expectations are in the
    /// same order.
    fn line(&self, row: Row, fault: &str) -> String {
        let expected: Vec<_> = self
            .showing(row)
            .map(|shown| shown.expected.as_str())
            .collect();
        let tests: Vec<_> = self
            .showing(row)
            .map(|shown| code(&shown.to_string()))
            .collect();
        let passes = match self.proof(row) {
            Proof::Caught => "passes",
            Proof::Untried => "passes; no mutation yet",
            Proof::Missed => "passes; does not catch its mutation",
        };
        let result = match (tests.is_empty(), self.reason(row).map(str::trim)) {
            (true, None) => "not shown".to_owned(),
            (true, Some(why)) => format!("does not apply: {why}"),
            (false, None) => passes.to_owned(),
            (false, Some(why)) => format!("{passes}; the rest does not apply: {why}"),
        };
        markdown::row([
            &row.to_string(),
            fault,
            &expected.join("<br>"),
            &tests.join("<br>"),
            &result,
        ])
    }
}

const OPENING: &str = "\
# Faults

Faults, the expected behaviour, and the tests that show it.

`cargo xtask faults` writes this page from the names of tests (`h01_…` for H1), the first sentences of their
documentation, `{REASONS}` and `tests/MUTATIONS.md`. `cargo xtask ci` fails unless every test named here
passed in its run, and every row has a test or a reason. A passing test alone proves little: `passes` means that a
fault which violates the row was planted in the product, and that a test of the row failed then.
";

const HEAD: &str = "| row | fault | expected | shown by | result |\n|---|---|---|---|---|\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Trial;

    #[test]
    fn a_line_says_what_is_known_of_its_row() {
        let text = "/// Either | or.\n#[test]\nfn h01_one() {}\n#[test]\nfn h01_two() {}\n#[test]\nfn h02_three() {}\n";
        let reasons = [("H2", "Not over\nHTTP/2."), ("H3", "None.")]
            .map(|(row, why)| (row.to_owned(), why.to_owned()));
        let trial = |row: &str, test: &str| Trial {
            rows: vec![row.into()],
            is_tried: true,
            caught_by: vec![test.into()],
        };
        let trials = vec![trial("H1", "a::h01_two"), trial("H2", "a::h01_two")];
        let faults = Faults {
            shown: rows::tests("a.rs", text),
            reasons: reasons.into(),
            trials,
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
                "| H1 | A fault | Either \\| or.<br>Two. | `a.rs::h01_one`<br>`a.rs::h01_two` | passes |\n",
                "| H2 | A fault | Three. | `a.rs::h02_three` | passes; does not catch its mutation; the rest does not apply: Not over HTTP/2. |\n",
                "| H3 | A fault |  |  | does not apply: None. |\n",
                "| H4 | A fault |  |  | not shown |\n",
            ]
        );
        assert_eq!(
            faults.counts(),
            "\nOf 2 rows with tests 1 are shown by a mutation that they caught; 0 have none yet, and 1 have one that they \
             did not catch.\n"
        );
        let untried = Faults {
            trials: Vec::new(),
            ..faults
        };
        assert!(
            untried
                .line(
                    Row {
                        section: 'H',
                        number: 1
                    },
                    "A fault"
                )
                .ends_with(" | passes; no mutation yet |\n")
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
