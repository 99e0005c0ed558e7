//! `tests/MUTATIONS.md`: the last result of every mutation.

use std::collections::BTreeMap;
use std::fs;

use super::list::Mutation;
use super::trial::Finding;
use super::{Findings, Verdict};
use crate::markdown::{self, code, row};
use crate::outcome::{At as _, Outcome};
use crate::workspace;

/// The results in the page.
pub(super) struct Page {
    results: Results,
    /// The commit of new results.
    commit: String,
}

/// The result of each mutation, by its name.
type Results = BTreeMap<String, Tried>;

/// The result of a mutation, in the words of the page.
struct Tried {
    result: String,
    /// The mark of the mutation that was tried.
    mark: String,
    /// The commit on which it was tried.
    commit: String,
    caught_by: Vec<String>,
}

impl Page {
    /// Reads the page without mutations that are no longer in the list, or have changed since.
    pub(super) fn read(all: &[Mutation]) -> Outcome<Self> {
        let text = match fs::read_to_string(workspace::root().join(PAGE)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{PAGE}: {error}")),
        };
        Ok(Self {
            results: current(results(&text).at(PAGE)?, all),
            commit: workspace::commit()?,
        })
    }

    /// Records the result of a mutation.
    pub(super) fn note(&mut self, mutation: &Mutation, finding: &Finding) {
        let caught_by = if finding.verdict.is_caught() {
            shortened(&finding.by, mutation.rows.len())
        } else {
            Vec::new()
        };
        let (result, mark, commit) = (
            finding.verdict.to_string(),
            mutation.mark(),
            self.commit.clone(),
        );
        let tried = Tried {
            result,
            mark,
            commit,
            caught_by,
        };
        self.results.insert(mutation.name.clone(), tried);
    }

    pub(super) fn write(&self, all: &[Mutation]) -> Outcome {
        workspace::write(PAGE, self.text(all))
    }

    pub(super) fn is_tried(&self, mutation: &Mutation) -> bool {
        self.results.contains_key(&mutation.name)
    }

    /// The commit on which a mutation was caught, or survived for the reason that the list has.
    pub(super) fn settled_on(&self, mutation: &Mutation) -> Option<&str> {
        let expected = match mutation.survives {
            Some(_) => "survived",
            None => "caught",
        };
        self.results
            .get(&mutation.name)
            .filter(|tried| tried.result.starts_with(expected))
            .map(|tried| &*tried.commit)
    }

    /// The first few tests that caught a mutation.
    pub(super) fn caught_by(&self, mutation: &Mutation) -> Vec<String> {
        self.results
            .get(&mutation.name)
            .map_or(Vec::new(), |tried| tried.caught_by.clone())
    }

    fn text(&self, all: &[Mutation]) -> String {
        let is_caught = |mutation: &&Mutation| self.result(mutation).starts_with("caught");
        let caught = all.iter().filter(is_caught).count();
        let tried = self.results.len();
        let mut text = format!(
            "{OPENING}{tried} of {} tried; {}\n\n{HEAD}",
            all.len(),
            share(caught, tried)
        );
        for mutation in all {
            let Mutation {
                name,
                rows,
                file,
                why,
                survives,
                ..
            } = mutation;
            let result = self.result(mutation);
            let reason = survives
                .as_ref()
                .filter(|_| result.starts_with("survived"))
                .map(|why| format!(": {why}"));
            let tried = self.results.get(name);
            let [mark, commit] = tried.map_or_else(Default::default, |tried| {
                [code(&tried.mark), code(&tried.commit)]
            });
            let by: Vec<_> = self
                .caught_by(mutation)
                .iter()
                .map(|test| code(test))
                .collect();
            let result = format!("{result}{}", reason.unwrap_or_default());
            text += &row([
                &code(name),
                &rows.join(" "),
                why,
                &code(file),
                &mark,
                &commit,
                &result,
                &by.join(" "),
            ]);
        }
        text
    }

    fn result(&self, mutation: &Mutation) -> &str {
        self.results
            .get(&mutation.name)
            .map_or("not tried", |tried| &tried.result)
    }
}

/// A summary of a run, for the terminal.
pub(super) fn summary(findings: &Findings) -> String {
    let width = findings.keys().map(String::len).max().unwrap_or(0);
    let lines = findings
        .iter()
        .map(|(name, finding)| format!("{name:width$}  {}\n", finding.verdict));
    let tried: Vec<_> = findings
        .values()
        .filter(|finding| finding.verdict != Verdict::Unbuilt)
        .collect();
    let caught = tried
        .iter()
        .filter(|finding| finding.verdict.is_caught())
        .count();
    format!(
        "\n{}\n{}\n",
        lines.collect::<String>(),
        share(caught, tried.len())
    )
}

fn share(caught: usize, tried: usize) -> String {
    let percent = if tried == 0 {
        0.0
    } else {
        100.0 * caught as f64 / tried as f64
    };
    format!("{caught} of {tried} caught: {percent:.1} %.")
}

/// Some of the tests that caught a mutation: enough for each of its rows, which come first.
fn shortened(by: &[String], rows: usize) -> Vec<String> {
    by.iter().take(rows + A_FEW).cloned().collect()
}

/// The results in the text of a page.
fn results(page: &str) -> Outcome<Results> {
    let plain = |code: &str| code.trim_matches('`').to_owned();
    let tried = |[name, _, _, _, mark, commit, result, by]: [String; 8]| {
        let result = result.split(": ").next().unwrap_or_default().to_owned();
        let caught_by = by.split_whitespace().map(plain).collect();
        (
            plain(&name),
            Tried {
                result,
                mark: plain(&mark),
                commit: plain(&commit),
                caught_by,
            },
        )
    };
    Ok(markdown::rows(page)?.into_iter().map(tried).collect())
}

/// The results of mutations that are in the list as they were tried.
fn current(mut results: Results, all: &[Mutation]) -> Results {
    let marks: BTreeMap<_, _> = all
        .iter()
        .map(|mutation| (&mutation.name, mutation.mark()))
        .collect();
    results.retain(|name, tried| marks.get(name).is_some_and(|now| *now == tried.mark));
    results
}

const OPENING: &str = "\
# Mutations

Each row plants one fault in the product, and shows whether the tests caught it. The list is in `tests/mutations`;
`cargo xtask mutate --write` tries it and writes this page; `cargo xtask tidy` checks that the list matches the code.
Where rows of the fault list (`FAULTS.md`) are named, a test of each of them has to fail. Tests that do not end count as
a catch, since that is noticed. The mark is a hash of the change and of the tests that ran, so that a mutation that was
changed later counts as not tried. The commit is the one on which it was tried.

";
const HEAD: &str = "| mutation | rows | guard | file | mark | commit | result | caught by |\n|---|---|---|---|---|---|---|---|\n";
const PAGE: &str = "tests/MUTATIONS.md";
/// The number of tests that are named beside those of the mutation's rows.
const A_FEW: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn mutation(name: &str) -> Mutation {
        let text = String::from;
        let find = text("a");
        let replace = text("b");
        let survives = (name == "three").then(|| text("It is told: by none | one."));
        let rows = if name == "two" {
            vec![text("H1"), text("C3")]
        } else {
            Vec::new()
        };
        Mutation {
            name: text(name),
            file: text("a.rs"),
            find,
            replace,
            why: text("This | that."),
            rows,
            tests: text(""),
            slow: false,
            survives,
        }
    }

    fn page(old: &[(&str, Verdict, &[&str])]) -> Page {
        let mut page = Page {
            results: Results::new(),
            commit: "0123456789ab".to_owned(),
        };
        for (name, verdict, by) in old {
            let by = by.iter().map(ToString::to_string).collect();
            page.note(
                &mutation(name),
                &Finding {
                    verdict: *verdict,
                    by,
                },
            );
        }
        page
    }

    #[test]
    fn a_page_keeps_what_was_not_tried_again() {
        let all = ["one", "two", "three", "four"].map(mutation);
        let old = page(&[
            ("one", Verdict::Survived, &[]),
            ("two", Verdict::Hung, &["a::h01_b", "c03_d"]),
            ("three", Verdict::Survived, &[]),
        ]);
        let mut page = Page {
            results: current(results(&old.text(&all)).unwrap(), &all),
            commit: "ba9876543210".to_owned(),
        };
        let by = ["a", "b", "c"].map(String::from).into();
        page.note(
            &all[0],
            &Finding {
                verdict: Verdict::Caught,
                by,
            },
        );
        let marks = all.each_ref().map(Mutation::mark);
        assert_eq!(
            page.text(&all).strip_prefix(OPENING).unwrap(),
            format!(
                "3 of 4 tried; 2 of 3 caught: 66.7 %.\n\n{HEAD}\
                 | `one` |  | This \\| that. | `a.rs` | `{}` | `ba9876543210` | caught | `a` `b` |\n\
                 | `two` | H1 C3 | This \\| that. | `a.rs` | `{}` | `0123456789ab` | caught (the tests did not end) | `a::h01_b` `c03_d` |\n\
                 | `three` |  | This \\| that. | `a.rs` | `{}` | `0123456789ab` | survived: It is told: by none \\| one. |  |\n\
                 | `four` |  | This \\| that. | `a.rs` |  |  | not tried |  |\n",
                marks[0], marks[1], marks[2]
            )
        );
        assert_eq!(page.caught_by(&all[1]), ["a::h01_b", "c03_d"]);
        assert!(page.is_tried(&all[2]) && !page.is_tried(&all[3]));
    }

    #[test]
    fn a_mutation_that_survived_without_a_reason_is_not_settled() {
        let page = page(&[
            ("one", Verdict::Survived, &[]),
            ("two", Verdict::Hung, &["a"]),
            ("three", Verdict::Survived, &[]),
            ("four", Verdict::Unbuilt, &[]),
            ("five", Verdict::Elsewhere, &["a"]),
        ]);
        let settled = |name| page.settled_on(&mutation(name)).is_some();
        // Of these, `three` has a reason to survive.
        assert_eq!(
            ["one", "two", "three", "four", "five", "six"].map(settled),
            [false, true, true, false, false, false]
        );
    }

    #[test]
    fn a_mutation_that_is_another_now_is_not_tried() {
        let old = page(&[("one", Verdict::Caught, &[]), ("two", Verdict::Caught, &[])]);
        let old = old.text(&["one", "two"].map(mutation));
        let all = [
            Mutation {
                replace: "c".into(),
                ..mutation("one")
            },
            mutation("two"),
        ];
        let left = current(results(&old).unwrap(), &all);
        assert_eq!(left.keys().collect::<Vec<_>>(), ["two"]);
    }
}
