//! Checks the language of comments: how documentation begins, and which words it uses.

use std::collections::BTreeMap;

use crate::language::{self, Measure};

/// The problems in the comments of a Rust file, each with its place.
pub(super) fn problems(name: &str, text: &str) -> Vec<String> {
    if EXEMPT.iter().any(|folder| name.starts_with(folder)) {
        return Vec::new();
    }
    let questions = language::openings(text).filter(|(_, word)| QUESTIONS.contains(word));
    let problem = |(number, word)| {
        format!("{name}:{number}: documentation begins with {word:?}; begin with the item or its action")
    };
    questions.map(problem).collect()
}

/// The crates in which too many words are of the dialect, or too much documentation begins with an unclear
/// word.
pub(super) fn excesses(measures: &BTreeMap<String, Measure>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, measure) in measures {
        let limit = LIMITS.iter().find(|limit| limit.0 == name).map_or(USUAL, |limit| (limit.1, limit.2));
        for (what, rate, limit) in [
            ("dialect words in 1,000 lines", measure.dialect_rate(), limit.0),
            ("% of documentation begins with an unclear word", measure.unclear_rate(), limit.1),
        ] {
            if rate > limit {
                found.push(format!("{name}: {rate:.1} {what}, {limit:.1} are allowed: see `cargo xtask language`"));
            }
        }
    }
    found
}

/// The limits of a crate: words in 1,000 lines, and percent of documentation.
const USUAL: (f64, f64) = (3.0, 2.0);
/// Crates with higher limits, until they are rewritten.
const LIMITS: [(&str, f64, f64); 3] = [("catalog", 9.0, 2.0), ("image-engine", 19.0, 23.0), ("server", 12.0, 2.0)];
const QUESTIONS: [&str; 7] = ["What", "Whether", "Who", "Whom", "Whose", "How", "Which"];

/// Folders whose documentation still has to be rewritten.
const EXEMPT: [&str; 1] = ["crates/image-engine/"];

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
        assert_eq!(problems("crates/image-engine/src/lib.rs", text), Vec::<String>::new());
        assert_eq!(
            problems("crates/sse/src/lib.rs", "/// However it is done.\n// What is it?\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_crate_has_its_own_limits_or_the_usual_ones() {
        let measure = |dialect, unclear| Measure { lines: 1000, docs: 100, dialect, unclear, ..Measure::default() };
        let measures = [("sse", measure(3, 2)), ("server", measure(12, 0)), ("wire", measure(4, 3))];
        assert_eq!(
            excesses(&measures.map(|(name, measure)| (name.to_owned(), measure)).into()),
            [
                "wire: 4.0 dialect words in 1,000 lines, 3.0 are allowed: see `cargo xtask language`",
                "wire: 3.0 % of documentation begins with an unclear word, 2.0 are allowed: see `cargo xtask language`",
            ]
        );
    }
}
