//! The figures that README.md and docs/benchmarks.md publish: sections of the results of the
//! benches, copied.

use crate::outcome::{At as _, Outcome};
use crate::workspace;

/// The results of the gateway, and those of the decoder.
pub(crate) const RESULTS: &str = "tests/benches/RESULTS.md";
pub(crate) const DECODE: &str = "tests/benches/DECODE.md";

/// A part of a page that has a section of the results.
struct Part {
    page: &'static str,
    /// Its name in the page: it is between `<!-- results: NAME -->` and `<!-- end -->`.
    name: &'static str,
    results: &'static str,
    heading: &'static str,
}

/// Copies the results to the pages.
pub(crate) fn publish() -> Outcome {
    for page in PAGES {
        let text = workspace::read(page)?;
        let renewed = renewed(page, &text)?;
        if renewed != text {
            workspace::write(page, renewed)?;
            println!("{page} has the figures of the results");
        }
    }
    Ok(())
}

/// A page with all its parts as the results are now.
fn renewed(page: &str, text: &str) -> Outcome<String> {
    let mut text = text.to_owned();
    for part in PARTS.iter().filter(|part| part.page == page) {
        let results = workspace::read(part.results)?;
        let section = section(&results, part.heading).at(part.results)?;
        text = replaced(&text, part.name, section).at(page)?;
    }
    Ok(text)
}

/// The text of a section, without blank lines around it.
fn section<'a>(results: &'a str, heading: &str) -> Result<&'a str, String> {
    let head = format!("\n## {heading}\n");
    let (_, text) = results
        .split_once(&head)
        .ok_or_else(|| format!("there is no section {heading:?}"))?;
    let end = text.find("\n## ").unwrap_or(text.len());
    Ok(text[..end].trim())
}

/// The page with another text in one part.
fn replaced(page: &str, name: &str, text: &str) -> Result<String, String> {
    let begin = format!("<!-- results: {name} -->\n");
    let missing = || format!("there is no part {name:?}");
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok([before, &begin, "\n", text, "\n\n", END, after].concat())
}

const PAGES: [&str; 2] = ["README.md", "docs/benchmarks.md"];
const PARTS: [Part; 6] = [
    part("README.md", "machine", RESULTS, "Machine"),
    part("README.md", "gateway", RESULTS, "In short"),
    part("README.md", "decode", DECODE, "Table"),
    part("docs/benchmarks.md", "machine", RESULTS, "Machine"),
    part("docs/benchmarks.md", "gateway", RESULTS, "In full"),
    part("docs/benchmarks.md", "decode", DECODE, "Table"),
];
const END: &str = "<!-- end -->";

const fn part(
    page: &'static str,
    name: &'static str,
    results: &'static str,
    heading: &'static str,
) -> Part {
    Part {
        page,
        name,
        results,
        heading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_rows_are_those_of_the_results() {
        for page in PAGES {
            let text = workspace::read(page).unwrap();
            assert_eq!(
                renewed(page, &text).unwrap(),
                text,
                "{page} has other figures: `cargo xtask bench --write` writes both"
            );
        }
    }

    #[test]
    fn a_part_is_replaced_by_a_section() {
        let results = "# A\n\n## Machine\n\none core\n\n## In short\n\n| a |\n";
        assert_eq!(section(results, "Machine"), Ok("one core"));
        assert_eq!(section(results, "In short"), Ok("| a |"));
        assert!(section(results, "In full").is_err());
        let page = "x\n<!-- results: a -->\nold\n<!-- end -->\ny\n";
        assert_eq!(
            replaced(page, "a", "new").unwrap(),
            "x\n<!-- results: a -->\n\nnew\n\n<!-- end -->\ny\n"
        );
        assert_eq!(
            replaced(page, "b", "new").unwrap_err(),
            "there is no part \"b\""
        );
    }
}
