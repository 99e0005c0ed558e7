//! `tests/MUTATIONS.md`: what came of every mutation when it was last tried.

use std::collections::BTreeMap;
use std::fs;

use super::list::Mutation;
use super::{Verdict, Verdicts};
use crate::{Outcome, workspace};

/// The results in the page, by the names of mutations.
pub(super) struct Page {
    results: BTreeMap<String, String>,
}

impl Page {
    /// The page as it is; what is no longer in the list is left out.
    pub(super) fn read(all: &[Mutation]) -> Outcome<Self> {
        let text = match fs::read_to_string(workspace::root().join(PAGE)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{PAGE}: {error}")),
        };
        let mut results = results(&text);
        results.retain(|name, _| all.iter().any(|mutation| mutation.name == *name));
        Ok(Self { results })
    }

    /// Takes in what came of a mutation.
    pub(super) fn note(&mut self, name: &str, verdict: Verdict) {
        self.results.insert(name.to_owned(), verdict.to_string());
    }

    pub(super) fn write(&self, all: &[Mutation]) -> Outcome {
        fs::write(workspace::root().join(PAGE), self.text(all)).map_err(|error| format!("{PAGE}: {error}"))
    }

    fn text(&self, all: &[Mutation]) -> String {
        let is = |mutation: &&Mutation, begins: &str| self.result(mutation).starts_with(begins);
        let caught = all.iter().filter(|mutation| is(mutation, "caught")).count();
        let survived = all.iter().filter(|mutation| is(mutation, "survived")).count();
        let mut text = format!("{OPENING}{}\n\n{HEAD}", share(caught, survived));
        for mutation in all {
            let Mutation { name, file, why, survives, .. } = mutation;
            let result = self.result(mutation);
            let reason = survives.as_ref().filter(|_| result.starts_with("survived")).map(|why| format!(": {why}"));
            let reason = reason.unwrap_or_default().replace('|', "\\|");
            text += &format!("| `{name}` | {} | `{file}` | {result}{reason} |\n", why.replace('|', "\\|"));
        }
        text
    }

    fn result(&self, mutation: &Mutation) -> &str {
        self.results.get(&mutation.name).map_or("not tried", String::as_str)
    }
}

/// What a run came to, for the terminal.
pub(super) fn summary(tried: &[&Mutation], verdicts: &Verdicts) -> String {
    let width = tried.iter().map(|mutation| mutation.name.len()).max().unwrap_or(0);
    let lines = tried.iter().map(|mutation| format!("{:width$}  {}\n", mutation.name, verdicts[&mutation.name]));
    let caught = verdicts.values().filter(|verdict| verdict.is_caught()).count();
    let survived = verdicts.values().filter(|verdict| **verdict == Verdict::Survived).count();
    format!("\n{}\n{}\n", lines.collect::<String>(), share(caught, survived))
}

fn share(caught: usize, survived: usize) -> String {
    let tried = caught + survived;
    let percent = if tried == 0 { 0.0 } else { 100.0 * caught as f64 / tried as f64 };
    format!("{caught} of {tried} caught: {percent:.1} %.")
}

/// The results that a page tells, without the reasons behind them.
fn results(page: &str) -> BTreeMap<String, String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let cells = rows.filter_map(|row| Some((row.split_once('`')?.0, row.rsplit_once("` | ")?.1)));
    cells.map(|(name, result)| (name.to_owned(), result.split(": ").next().unwrap_or(result).to_owned())).collect()
}

const OPENING: &str = "\
# Mutations

Each row takes one guard of the product away, and says whether the tests told. The list is in `tests/mutations`;
`cargo xtask mutate --write` tries it and writes this page; `cargo xtask tidy` holds the list against the code.

";
const HEAD: &str = "| mutation | guard | file | result |\n|---|---|---|---|\n";
const PAGE: &str = "tests/MUTATIONS.md";

#[cfg(test)]
mod tests {
    use super::*;

    fn mutation(name: &str) -> Mutation {
        let text = String::from;
        let (find, replace) = (text("a"), text("b"));
        let survives = (name == "three").then(|| text("It is told: by none | one."));
        Mutation {
            name: text(name),
            file: text("a.rs"),
            find,
            replace,
            why: text("This | that."),
            tests: text(""),
            survives,
        }
    }

    #[test]
    fn a_page_keeps_what_was_not_tried_again() {
        let all = ["one", "two", "three", "four"].map(mutation);
        let mut page = Page { results: BTreeMap::new() };
        for (name, verdict) in [("one", Verdict::Survived), ("two", Verdict::Hung), ("three", Verdict::Survived)] {
            page.note(name, verdict);
        }
        let mut page = Page { results: results(&page.text(&all)) };
        page.note("one", Verdict::Caught);
        let again = page.text(&all);
        assert_eq!(
            again.strip_prefix(OPENING).unwrap(),
            format!(
                "2 of 3 caught: 66.7 %.\n\n{HEAD}\
                 | `one` | This \\| that. | `a.rs` | caught |\n\
                 | `two` | This \\| that. | `a.rs` | caught (the tests did not end) |\n\
                 | `three` | This \\| that. | `a.rs` | survived: It is told: by none \\| one. |\n\
                 | `four` | This \\| that. | `a.rs` | not tried |\n"
            )
        );
    }
}
