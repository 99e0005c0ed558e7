//! `tests/LONG.md`: the last result of each part of the long tier.

use crate::markdown::{self, code};
use crate::outcome::Outcome;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Page(Vec<Row>);

/// The last result of one part.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) part: String,
    /// A few words; they begin with `passed`, `FAILED`, `not run` or `cannot run here`.
    pub(super) result: String,
    /// The commit that the part ran on.
    pub(super) commit: String,
    pub(super) date: String,
    pub(super) minutes: String,
}

impl Page {
    pub(super) fn parse(text: &str) -> Outcome<Self> {
        let row = |[part, result, commit, date, minutes]: [String; 5]| {
            let commit = commit.trim_matches('`').to_owned();
            Row {
                part,
                result,
                commit,
                date,
                minutes,
            }
        };
        Ok(Self(markdown::rows(text)?.into_iter().map(row).collect()))
    }

    pub(super) fn row(&self, part: &str) -> Option<&Row> {
        self.0.iter().find(|row| row.part == part)
    }

    /// Replaces the row of a part, or adds it.
    pub(super) fn put(&mut self, row: Row) {
        self.0.retain(|old| old.part != row.part);
        self.0.push(row);
    }

    /// The page with its rows in the order of `parts`; other rows are dropped.
    pub(super) fn text(&self, parts: &[&str]) -> String {
        let line =
            |Row {
                 part,
                 result,
                 commit,
                 date,
                 minutes,
             }: &Row| { markdown::row([part, result, &code(commit), date, minutes]) };
        format!(
            "{OPENING}{}",
            parts
                .iter()
                .filter_map(|part| self.row(part))
                .map(line)
                .collect::<String>()
        )
    }
}

const OPENING: &str = "\
# The long tier

The last result of each part of `cargo xtask ci --tier long`, which writes this page; `--only PART` runs one of them,
`--list` describes them. `cargo xtask ci` fails when a row failed, or when more commits have changed its area since than
the part allows. For a part that has not run yet, changes since the commit in its row count.

| part | result | commit | date | minutes |
|---|---|---|---|---:|
";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(part: &str, result: &str) -> Row {
        let [commit, date, minutes] = ["0123456789ab", "2026-01-31", "1.5"].map(str::to_owned);
        Row {
            part: part.to_owned(),
            result: result.to_owned(),
            commit,
            date,
            minutes,
        }
    }

    #[test]
    fn a_page_is_read_as_it_is_written() {
        let mut page = Page::default();
        for (part, result) in [
            ("soak", "FAILED: a"),
            ("fuzz", "passed"),
            ("soak", "passed, 3 of 3"),
            ("gone", "passed"),
        ] {
            page.put(row(part, result));
        }
        let text = page.text(&["fuzz", "soak", "node"]);
        assert!(text.ends_with(
            "| fuzz | passed | `0123456789ab` | 2026-01-31 | 1.5 |\n\
             | soak | passed, 3 of 3 | `0123456789ab` | 2026-01-31 | 1.5 |\n"
        ));
        let rows = vec![row("fuzz", "passed"), row("soak", "passed, 3 of 3")];
        assert_eq!(Page::parse(&text), Ok(Page(rows)));
    }

    #[test]
    fn a_broken_row_is_an_error() {
        assert!(
            Page::parse(&format!("{OPENING}| fuzz | passed |\n"))
                .unwrap_err()
                .contains("5 cells")
        );
    }
}
