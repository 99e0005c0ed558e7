//! `tests/MUTATIONS.md`: what came of every mutation when it was last tried.

use std::collections::BTreeMap;
use std::fs;

use super::list::Mutation;
use super::{Verdict, Verdicts};
use crate::{Outcome, workspace};

/// The results in the page.
pub(super) struct Page {
    results: Results,
}

/// What came of each mutation, by its name, and the mark of what was tried.
type Results = BTreeMap<String, (String, String)>;

impl Page {
    /// The page as it is; what is no longer in the list, or is another mutation now, is left out.
    pub(super) fn read(all: &[Mutation]) -> Outcome<Self> {
        let text = match fs::read_to_string(workspace::root().join(PAGE)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{PAGE}: {error}")),
        };
        Ok(Self { results: current(results(&text), all) })
    }

    /// Takes in what came of a mutation.
    pub(super) fn note(&mut self, mutation: &Mutation, verdict: Verdict) {
        self.results.insert(mutation.name.clone(), (verdict.to_string(), mutation.mark()));
    }

    pub(super) fn write(&self, all: &[Mutation]) -> Outcome {
        fs::write(workspace::root().join(PAGE), self.text(all)).map_err(|error| format!("{PAGE}: {error}"))
    }

    fn text(&self, all: &[Mutation]) -> String {
        let is = |mutation: &&Mutation, begins: &str| self.result(mutation).starts_with(begins);
        let caught = all.iter().filter(|mutation| is(mutation, "caught")).count();
        let survived = all.iter().filter(|mutation| is(mutation, "survived")).count();
        let tried = self.results.len();
        let mut text = format!("{OPENING}{tried} of {} tried; {}\n\n{HEAD}", all.len(), share(caught, survived));
        for mutation in all {
            let Mutation { name, file, why, survives, .. } = mutation;
            let result = self.result(mutation);
            let reason = survives.as_ref().filter(|_| result.starts_with("survived")).map(|why| format!(": {why}"));
            let reason = reason.unwrap_or_default().replace('|', "\\|");
            let mark = self.results.get(name).map_or(String::new(), |(_, mark)| format!("`{mark}`"));
            text += &format!("| `{name}` | {} | `{file}` | {mark} | {result}{reason} |\n", why.replace('|', "\\|"));
        }
        text
    }

    fn result(&self, mutation: &Mutation) -> &str {
        self.results.get(&mutation.name).map_or("not tried", |(result, _)| result)
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
fn results(page: &str) -> Results {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    rows.filter_map(|row| {
        let name = row.split_once('`')?.0;
        let (mark, result) = row.rsplit_once("` | `")?.1.split_once("` | ")?;
        let result = result.split(": ").next().unwrap_or(result);
        Some((name.to_owned(), (result.to_owned(), mark.to_owned())))
    })
    .collect()
}

/// The results of mutations that are in the list as they were tried.
fn current(mut results: Results, all: &[Mutation]) -> Results {
    let marks: BTreeMap<_, _> = all.iter().map(|mutation| (&mutation.name, mutation.mark())).collect();
    results.retain(|name, (_, mark)| marks.get(name).is_some_and(|now| now == mark));
    results
}

const OPENING: &str = "\
# Mutations

Each row takes one guard of the product away, and says whether the tests told. The list is in `tests/mutations`;
`cargo xtask mutate --write` tries it and writes this page; `cargo xtask tidy` holds the list against the code. Tests
that do not end count as a catch: whoever runs them sees it. The mark is of what was changed and which tests ran, so
that a mutation that is another one since then counts as not tried.

";
const HEAD: &str = "| mutation | guard | file | mark | result |\n|---|---|---|---|---|\n";
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

    fn page(told: &[(&str, Verdict)]) -> Page {
        let mut page = Page { results: Results::new() };
        told.iter().for_each(|(name, verdict)| page.note(&mutation(name), *verdict));
        page
    }

    #[test]
    fn a_page_keeps_what_was_not_tried_again() {
        let all = ["one", "two", "three", "four"].map(mutation);
        let told = page(&[("one", Verdict::Survived), ("two", Verdict::Hung), ("three", Verdict::Survived)]);
        let mut page = Page { results: current(results(&told.text(&all)), &all) };
        page.note(&all[0], Verdict::Caught);
        let (again, mark) = (page.text(&all), all[0].mark());
        assert_eq!(
            again.strip_prefix(OPENING).unwrap(),
            format!(
                "3 of 4 tried; 2 of 3 caught: 66.7 %.\n\n{HEAD}\
                 | `one` | This \\| that. | `a.rs` | `{mark}` | caught |\n\
                 | `two` | This \\| that. | `a.rs` | `{mark}` | caught (the tests did not end) |\n\
                 | `three` | This \\| that. | `a.rs` | `{mark}` | survived: It is told: by none \\| one. |\n\
                 | `four` | This \\| that. | `a.rs` |  | not tried |\n"
            )
        );
    }

    #[test]
    fn a_mutation_that_is_another_now_is_not_tried() {
        let told = page(&[("one", Verdict::Caught), ("two", Verdict::Caught)]).text(&["one", "two"].map(mutation));
        let all = [Mutation { replace: "c".into(), ..mutation("one") }, mutation("two")];
        let left = current(results(&told), &all);
        assert_eq!(left.keys().collect::<Vec<_>>(), ["two"]);
    }
}
