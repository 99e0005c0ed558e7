//! Finds the tests that show rows in the text of a source file.

use std::fmt;

use super::Row;

/// A test that shows rows.
#[derive(Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) rows: Vec<Row>,
    /// The file, from the root of the repository.
    pub(crate) file: String,
    /// The name of the function.
    pub(crate) name: String,
    /// The expected behaviour, in a sentence.
    pub(crate) expected: String,
}

impl Shown {
    /// Returns true if it shows this row: `H13`.
    pub(crate) fn shows(&self, row: &str) -> bool {
        self.rows.iter().any(|shown| shown.to_string() == row)
    }
}

/// The place of the test: `tests/faults/framing.rs::h13_…`.
impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.file, self.name)
    }
}

/// The tests in the text of `file` whose names begin with rows.
pub(crate) fn tests(file: &str, text: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    let mut above = Above::default();
    for line in text.lines().map(str::trim) {
        if above.take(line) {
            continue;
        }
        let above = std::mem::take(&mut above);
        let name = function(line).filter(|_| above.is_test);
        let name = name.unwrap_or_default().to_owned();
        let (rows, title) = Row::leading(&name);
        if !rows.is_empty() {
            found.push(Shown {
                rows,
                expected: above.sentence().unwrap_or_else(|| in_words(title)),
                file: file.into(),
                name,
            });
        }
    }
    found
}

/// The documentation and attributes above a function.
#[derive(Default)]
struct Above {
    doc: Vec<String>,
    is_test: bool,
    /// The number of brackets of an attribute that are still open.
    open: usize,
}

impl Above {
    /// Consumes a line of documentation or attributes; returns false for any other line.
    fn take(&mut self, line: &str) -> bool {
        if self.open > 0 || line.starts_with("#[") {
            self.is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            self.open += line.matches('[').count();
            self.open = self.open.saturating_sub(line.matches(']').count());
            return true;
        }
        let doc = line.strip_prefix("///");
        self.doc.extend(doc.map(|doc| doc.trim().to_owned()));
        doc.is_some()
    }

    /// The first sentence of the documentation.
    fn sentence(&self) -> Option<String> {
        let mut paragraphs = self.doc.split(String::is_empty);
        let paragraph = paragraphs.next()?.join(" ");
        let end = paragraph.find(". ").map_or(paragraph.len(), |at| at + 1);
        (end > 0).then(|| paragraph[..end].to_owned())
    }
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let is_other = |letter: char| !letter.is_alphanumeric() && letter != '_';
    line.strip_prefix("fn ")?.split(is_other).next()
}

/// Turns `half_closed_clients_are_gone` into a sentence.
fn in_words(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let words: String = first.into_iter().chain(letters).collect();
    format!("{}.", words.replace('_', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> (String, String) {
        let mut found = tests("a.rs", text);
        assert_eq!(found.len(), 1, "{text}");
        let Shown { rows, expected, .. } = found.remove(0);
        (
            rows.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" "),
            expected,
        )
    }

    #[test]
    fn the_expectation_is_the_first_sentence() {
        let text = "    /// The body ends\n    /// with 408. Never later.\n    ///\n    /// More.\n    #[test]\n    fn l03_slow() {";
        assert_eq!(one(text), ("L3".into(), "The body ends with 408.".into()));
    }

    #[test]
    fn a_name_alone_is_read_as_one() {
        let text = "#[test]\nfn c03_u19_a_client_that_does_not_read_is_given_up() {";
        assert_eq!(
            one(text),
            (
                "C3 U19".into(),
                "A client that does not read is given up.".into()
            )
        );
    }

    #[test]
    fn attributes_may_stand_anywhere_above() {
        let text = "#[tokio::test(\n    flavor = \"current_thread\",\n    ids = [1]\n)]\n#[cfg(unix)]\n/// Gone.\nasync fn c01_gone() {";
        assert_eq!(one(text), ("C1".into(), "Gone.".into()));
    }

    #[test]
    fn only_tests_that_name_a_row_count() {
        let text = "#[test]\nfn h1_short() {}\n#[test]\nfn plain() {}\nfn h01_no_test() {}\n#[test]\n\nconst A: u8 = 1;\nfn h02_either() {}\n";
        assert_eq!(tests("a.rs", text), []);
    }
}
