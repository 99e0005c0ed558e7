//! `tests/FAULTS.md`, as the repository says it.

use std::fmt::Write as _;

use super::rows::{Row, SECTIONS, Section};
use super::{Faults, REASONS};

impl Faults {
    /// The whole page.
    pub(super) fn page(&self) -> String {
        let mut page = OPENING.replace("{REASONS}", REASONS);
        for section in SECTIONS {
            _ = write!(page, "\n## {}: {}\n\n{HEAD}", section.letter, section.title);
            for (row, fault) in section.rows() {
                page += &self.line(row, fault);
            }
        }
        page
    }

    /// A line of a table. Where there are several tests, theirs and what they expect stand in the same order.
    fn line(&self, row: Row, fault: &str) -> String {
        let expected: Vec<_> = self.showing(row).map(|shown| escaped(&shown.expected)).collect();
        let tests: Vec<_> = self.showing(row).map(|shown| format!("`{shown}`")).collect();
        let result = match (tests.is_empty(), self.reason(row).map(escaped)) {
            (true, None) => "not shown".to_owned(),
            (true, Some(why)) => format!("does not apply: {why}"),
            (false, None) => "passes".to_owned(),
            (false, Some(why)) => format!("passes; the rest does not apply: {why}"),
        };
        format!("| {row} | {} | {} | {} | {result} |\n", escaped(fault), expected.join("<br>"), tests.join("<br>"))
    }
}

impl Section {
    fn rows(&self) -> impl Iterator<Item = (Row, &'static str)> {
        (1..).zip(self.faults).map(|(number, fault)| (Row { section: self.letter, number }, *fault))
    }
}

/// Text for a cell of a table.
fn escaped(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', " ")
}

const OPENING: &str = "\
# Faults

What may go wrong, what is owed then, and the tests that show it.

`cargo xtask faults` writes this page from the names of tests, `h01_…` for H1, from their first sentences, and from
`{REASONS}`. `cargo xtask ci` fails unless every test named here passed in its run, and every row has a
test or a reason: so `passes` is a result, not a wish.
";

const HEAD: &str = "| row | fault | expected | shown by | result |\n|---|---|---|---|---|\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::scan;

    #[test]
    fn a_line_says_what_is_known_of_its_row() {
        let text = "/// Either | or.\n#[test]\nfn h01_one() {}\n#[test]\nfn h01_two() {}\n#[test]\nfn h02_three() {}\n";
        let reasons = [("H2", "Not over\nHTTP/2."), ("H3", "None.")].map(|(row, why)| (row.to_owned(), why.to_owned()));
        let faults = Faults { shown: scan::tests("a.rs", text), reasons: reasons.into() };
        let line = |number| faults.line(Row { section: 'H', number }, "A fault");
        assert_eq!(
            [line(1), line(2), line(3), line(4)],
            [
                "| H1 | A fault | Either \\| or.<br>Two. | `a.rs::h01_one`<br>`a.rs::h01_two` | passes |\n",
                "| H2 | A fault | Three. | `a.rs::h02_three` | passes; the rest does not apply: Not over HTTP/2. |\n",
                "| H3 | A fault |  |  | does not apply: None. |\n",
                "| H4 | A fault |  |  | not shown |\n",
            ]
        );
    }

    #[test]
    fn the_page_has_every_row_once() {
        let page = Faults::default().page();
        for row in super::super::rows::all() {
            assert_eq!(page.matches(&format!("\n| {row} | ")).count(), 1, "{row}");
        }
    }
}
