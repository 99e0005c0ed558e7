//! The figures that README.md cites: rows of docs/benchmarks.md, copied.

use crate::outcome::Outcome;
use crate::workspace;

/// The page of results.
pub(crate) const PAGE: &str = "docs/benchmarks.md";
const README: &str = "README.md";

/// Copies the rows that README.md cites from the page.
pub(crate) fn publish() -> Outcome {
    let text = workspace::read(README)?;
    workspace::write(README, renewed(&text, &workspace::read(PAGE)?)?)
}

/// The text with its lines between `<!-- results: PART -->` and `<!-- end -->` as the same part of
/// the page has them.
fn renewed(text: &str, page: &str) -> Outcome<String> {
    let mut renewed = text.to_owned();
    for part in text.split(BEGIN).skip(1) {
        let cited = part.split(END).next().unwrap_or_default();
        let name = cited.lines().next().unwrap_or_default();
        let mut parts = page.split(BEGIN);
        let rows = parts.find(|part| part.starts_with(name)).unwrap_or("");
        let mut lines = String::new();
        for line in cited.lines() {
            let row = rows.lines().find(|row| key(row) == key(line));
            lines += row.ok_or_else(|| format!("{PAGE} has no {line:?}"))?;
            lines.push('\n');
        }
        renewed = renewed.replace(cited, &lines);
    }
    Ok(renewed)
}

/// The part of a line that stays the same when the figures change: the name of a row, or the first
/// word.
fn key(line: &str) -> &str {
    match line.split('|').nth(1) {
        Some(rule) if rule.starts_with('-') => "-",
        Some(name) => name.trim(),
        None => line.split_whitespace().next().unwrap_or_default(),
    }
}

const BEGIN: &str = "<!-- results: ";
const END: &str = "<!-- end -->";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cited_rows_are_those_of_the_page() {
        let text = workspace::read(README).unwrap();
        assert_eq!(
            renewed(&text, &workspace::read(PAGE).unwrap()).unwrap(),
            text,
            "README.md has other figures: copy the rows from {PAGE}, or let `cargo xtask bench --write` do it"
        );
    }

    #[test]
    fn rows_are_found_by_their_names() {
        let page = "<!-- results: a -->\n\nMeasured now.\n\n| figure | us |\n|---|--:|\n| a | 2 |\n| b | 3 |\n\n<!-- end -->\n";
        let text = "x\n<!-- results: a -->\n\nMeasured then.\n\n| figure | us |\n|--|--:|\n| b | 1 |\n\n<!-- end -->\ny\n";
        assert_eq!(
            renewed(text, page).unwrap(),
            "x\n<!-- results: a -->\n\nMeasured now.\n\n| figure | us |\n|---|--:|\n| b | 3 |\n\n<!-- end -->\ny\n"
        );
        for (found, other, missing) in [("| b |", "| c |", "| c | 1 |"), (": a", ": b", "b -->")] {
            assert_eq!(
                renewed(&text.replace(found, other), page).unwrap_err(),
                format!("docs/benchmarks.md has no {missing:?}")
            );
        }
    }
}
