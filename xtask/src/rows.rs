//! The rows of the list of faults, `tests/faults/rows.txt`, and the tests that name them.

mod program;
mod scan;

use std::fmt;

pub(crate) use self::scan::{Shown, tests};
use crate::outcome::Outcome;
use crate::workspace;

/// A row: `H13`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    pub(crate) section: char,
    pub(crate) number: usize,
}

/// The letter and the title of a subject, and its rows with the fault of each, numbered from one.
pub(crate) type Section = (char, &'static str, Vec<(Row, &'static str)>);

impl Row {
    /// The rows at the beginning of a test's name, and the rest of the name: `c03_u19_gone` is C3,
    /// U19 and `gone`.
    pub(crate) fn leading(name: &str) -> (Vec<Self>, &str) {
        let mut rows = Vec::new();
        let mut rest = name;
        while let Some((word, behind)) = rest.split_once('_')
            && let Some(row) = Self::in_name(word)
        {
            rows.push(row);
            rest = behind;
        }
        (rows, rest)
    }

    /// Parses one row in the spelling of test names: `c03`.
    fn in_name(word: &str) -> Option<Self> {
        let (letter, digits) = word.split_at_checked(1)?;
        let letter = letter.chars().next().filter(char::is_ascii_lowercase)?;
        let is_number = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| is_number)?;
        let section = letter.to_ascii_uppercase();
        Some(Self { section, number })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.section, self.number)
    }
}

/// The subjects of the list, each with its rows.
pub(crate) fn sections() -> impl Iterator<Item = Section> {
    ROWS.split("\n\n").filter_map(|section| {
        let mut lines = section.lines().map(str::trim);
        let (letter, title) = lines.next()?.split_once(' ')?;
        let section = letter.chars().next()?;
        let rows = (1..).zip(lines);
        let rows = rows.map(|(number, fault)| (Row { section, number }, fault));
        Some((section, title, rows.collect()))
    })
}

/// Every row, in order.
pub(crate) fn all() -> impl Iterator<Item = Row> {
    let rows = sections().flat_map(|(.., rows)| rows);
    rows.map(|(row, _)| row)
}

/// Every test of the repository that names rows.
pub(crate) struct Tests(pub(crate) Vec<Shown>);

impl Tests {
    pub(crate) fn read() -> Outcome<Self> {
        let files = workspace::texts(may_hold_tests)?;
        let tests = files.iter().flat_map(|(name, text)| tests(name, text));
        Ok(Self(tests.collect()))
    }
}

/// Returns true if a test, named by its path in its program, is one of this row:
/// `bounds::l04_heads_are_bounded` is of `L4`.
pub(crate) fn is_of(test: &str, row: &str) -> bool {
    let name = test.rsplit("::").next().unwrap_or(test);
    let (rows, _) = Row::leading(name);
    rows.iter().any(|leading| leading.to_string() == row)
}

/// Returns true for the name of a row: `H13`.
pub(crate) fn is_row(name: &str) -> bool {
    all().any(|row| row.to_string() == name)
}

/// Returns true if a file may contain tests of the product.
fn may_hold_tests(name: &str) -> bool {
    let mut folders = name.split('/');
    let is_there = match folders.next() {
        Some("crates") => matches!(folders.nth(1), Some("src" | "tests")),
        top => top == Some("tests"),
    };
    is_there && name.ends_with(".rs")
}

/// A subject begins with its letter and its title; its rows are below it, and a blank line ends it.
const ROWS: &str = include_str!("../../tests/faults/rows.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_with_rows() {
        let leading = |name| {
            let (rows, rest) = Row::leading(name);
            (
                rows.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" "),
                rest,
            )
        };
        assert_eq!(leading("h01_a"), ("H1".to_owned(), "a"));
        assert_eq!(
            leading("c03_u19_gone_by_u16_x"),
            ("C3 U19".to_owned(), "gone_by_u16_x")
        );
        assert_eq!(leading("H01_a"), (String::new(), "H01_a"));
        assert_eq!(leading("h1_a"), (String::new(), "h1_a"));
        assert_eq!(leading("h01"), (String::new(), "h01"));
    }

    #[test]
    fn the_list_is_whole() {
        let counts: Vec<_> = sections()
            .map(|(letter, _, rows)| (letter, rows.len()))
            .collect();
        let expected = "H21 L14 A12 J12 M12 S17 U24 C8 O10 D16 F15 I9 P8 E6";
        let expected = expected
            .split(' ')
            .map(|word| (char::from(word.as_bytes()[0]), word[1..].parse().unwrap()));
        assert_eq!(counts, expected.collect::<Vec<_>>());
        assert!(is_row("E6") && !is_row("E7"));
    }

    #[test]
    fn tests_are_looked_for_where_the_product_is() {
        assert!(
            [
                "crates/sse/src/lines.rs",
                "crates/sse/tests/it/a.rs",
                "tests/faults/a.rs"
            ]
            .iter()
            .all(|name| may_hold_tests(name))
        );
        assert!(
            ![
                "xtask/src/a.rs",
                "fuzz/src/lib.rs",
                "crates/sse/benches/a.rs",
                "tests/a.md"
            ]
            .iter()
            .any(|name| may_hold_tests(name))
        );
    }
}
