//! Checks the language of comments: how documentation begins, and which words it uses.

use std::collections::BTreeMap;

use crate::language::{self, Measure};

/// The problems in the comments of a Rust file, each with its place.
pub(super) fn problems(name: &str, text: &str) -> Vec<String> {
    let questions = language::openings(text).filter(|(_, word)| QUESTIONS.contains(word));
    let problem = |(number, word)| {
        format!(
            "{name}:{number}: documentation begins with {word:?}; begin with the item or its action"
        )
    };
    questions.map(problem).collect()
}

/// The crates in which too many words are of the dialect, or too much documentation begins with an
/// unclear word.
pub(super) fn excesses(measures: &BTreeMap<String, Measure>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, measure) in measures {
        for (what, rate, limit) in [
            (
                "dialect words in 1,000 lines",
                measure.dialect_rate(),
                DIALECT,
            ),
            (
                "% of documentation begins with an unclear word",
                measure.unclear_rate(),
                UNCLEAR,
            ),
        ] {
            if rate > limit {
                found.push(format!(
                    "{name}: {rate:.1} {what}, {limit:.1} are allowed: see `cargo xtask language`"
                ));
            }
        }
    }
    found
}

/// The number of words in 1,000 lines that a crate may have.
const DIALECT: f64 = 3.0;
/// The percentage of documentation that may begin with an unclear word.
const UNCLEAR: f64 = 2.0;
const QUESTIONS: [&str; 7] = ["What", "Whether", "Who", "Whom", "Whose", "How", "Which"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_says_what_an_item_is() {
        let text = "//! How it is done.\n\n/// A size.\n/// What is more: in bytes.\nstruct A;\n\n/// Whether it is open.\nfn a() {}\n";
        assert_eq!(
            problems("crates/sse/src/lib.rs", text),
            [
                "crates/sse/src/lib.rs:1: documentation begins with \"How\"; begin with the item or its action",
                "crates/sse/src/lib.rs:7: documentation begins with \"Whether\"; begin with the item or its action",
            ]
        );
        assert_eq!(
            problems(
                "crates/sse/src/lib.rs",
                "/// However it is done.\n// What is it?\n"
            ),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_crate_over_a_limit_is_reported() {
        let measure = |dialect, unclear| Measure {
            lines: 1000,
            docs: 100,
            dialect,
            unclear,
            ..Measure::default()
        };
        let measures = [("sse", measure(3, 2)), ("wire", measure(4, 3))];
        assert_eq!(
            excesses(
                &measures
                    .map(|(name, measure)| (name.to_owned(), measure))
                    .into()
            ),
            [
                "wire: 4.0 dialect words in 1,000 lines, 3.0 are allowed: see `cargo xtask language`",
                "wire: 3.0 % of documentation begins with an unclear word, 2.0 are allowed: see `cargo xtask language`",
            ]
        );
    }
}
