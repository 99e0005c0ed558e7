//! `tests/mutations/*.toml`: the guards that are removed, and the tests that should fail then.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::matching;
use crate::outcome::{At as _, Outcome};
use crate::rows::{self, Tests};
use crate::workspace;

/// The removal of one guard.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutation {
    pub(crate) name: String,
    /// The source, from the root of the repository.
    pub(super) file: String,
    /// The text that is replaced, which occurs exactly once; its format does not matter.
    pub(super) find: String,
    pub(super) replace: String,
    /// The description of the guard.
    pub(super) why: String,
    /// The rows of the fault list that it violates: a test of each has to catch it.
    #[serde(default)]
    pub(crate) rows: Vec<String>,
    /// The arguments of `cargo test`; by default the arguments for its rows, or else for its
    /// chapter.
    #[serde(default)]
    pub(super) tests: String,
}

impl Mutation {
    /// Its file with this change; an error unless `find` occurs there exactly once.
    pub(super) fn applied(&self, text: &str) -> Outcome<String> {
        match matching::places(text, &self.find).as_slice() {
            [place] => Ok([&text[..place.start], &self.replace, &text[place.end..]].concat()),
            places => Err(format!(
                "`find` occurs {} times in {}, and must occur once",
                places.len(),
                self.file
            )),
        }
    }

    /// The arguments of cargo for its tests, and the arguments of the test programs.
    pub(super) fn arguments(&self) -> (Vec<&str>, Vec<&str>) {
        let mut cargo = Vec::new();
        let mut programs = Vec::new();
        let mut words = self.tests.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "--" => programs.extend(words.by_ref()),
                "-p" | "--test" | "--features" => {
                    cargo.push(word);
                    cargo.extend(words.next());
                }
                flag if flag.starts_with('-') => cargo.push(flag),
                filter => programs.push(filter),
            }
        }
        (cargo, programs)
    }

    /// Returns true if its tests need one of the servers of `cargo xtask shared`.
    pub(super) fn needs_server(&self) -> bool {
        let mut packages = ["sluicegate-lease", "sluicegate-accounting"].iter();
        self.tests.contains("--ignored") && packages.any(|name| self.tests.contains(name))
    }
}

/// One file of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chapter {
    /// The arguments of `cargo test` for mutations that have neither tests nor rows.
    tests: String,
    mutation: Vec<Mutation>,
}

/// The whole list.
pub(crate) fn read() -> Outcome<Vec<Mutation>> {
    let mut all = Vec::new();
    let of_rows = Tests::read()?;
    let is_chapter = |name: &str| name.starts_with("tests/mutations/") && name.ends_with(".toml");
    for (name, text) in workspace::texts(is_chapter)? {
        let arguments = |mutation: &Mutation| of_rows.arguments(&mutation.rows, &mutation.file);
        all.extend(chapter(&text, arguments).at(name)?);
    }
    Ok(all)
}

/// Mutations that do not match the code, or are not described correctly. The step `tidy` reports
/// them, since all trials take too long.
pub(crate) fn problems(all: &[Mutation]) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for mutation in all {
        let name = &mutation.name;
        let mut report = |what: String| found.push(format!("mutation {name}: {what}"));
        if !names.insert(name) {
            report("the name is used twice".into());
        }
        if mutation.find == mutation.replace {
            report("`find` and `replace` are equal".into());
        }
        if mutation.why.trim().is_empty() || mutation.tests.trim().is_empty() {
            report("`why` or `tests` is empty".into());
        }
        for row in mutation.rows.iter().filter(|row| !rows::is_row(row)) {
            report(format!("{row} is not a row of the list"));
        }
        let text = workspace::read(&mutation.file);
        if let Err(error) = text.and_then(|text| mutation.applied(&text)) {
            report(error);
        }
    }
    found
}

/// The mutations of a file; `of_rows` are the arguments that run the tests of a mutation's rows.
fn chapter(text: &str, of_rows: impl Fn(&Mutation) -> Option<String>) -> Outcome<Vec<Mutation>> {
    let chapter: Chapter = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut mutations = chapter.mutation;
    for mutation in &mut mutations {
        match mutation.rows.as_slice() {
            _ if !mutation.tests.is_empty() => continue,
            [] => mutation.tests.clone_from(&chapter.tests),
            rows => {
                let (name, rows) = (&mutation.name, rows.join(" and "));
                let tests = of_rows(mutation);
                mutation.tests = tests.ok_or(format!(
                    "mutation {name}: no test program has tests of {rows}"
                ))?;
            }
        }
    }
    Ok(mutations)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAPTER: &str = "\
tests = '-p sluicegate-sse'

[[mutation]]
name = 'one'
file = 'xtask/Cargo.toml'
find = 'name = \"xtask\"'
replace = ''
why = 'Its name.'

[[mutation]]
name = 'one'
file = 'xtask/Cargo.toml'
find = 'a'
replace = 'a'
why = ''
tests = '-p xtask'
rows = ['H99']

[[mutation]]
name = 'two'
rows = ['H1']
file = 'xtask/none.rs'
find = 'a'
replace = ''
why = 'No file.'
";

    fn mutations() -> Vec<Mutation> {
        chapter(CHAPTER, |mutation| {
            Some(format!("-- {}", mutation.rows.join(" ")))
        })
        .unwrap()
    }

    #[test]
    fn mutations_run_their_tests_or_those_of_their_rows() {
        let tests: Vec<_> = mutations()
            .into_iter()
            .map(|mutation| mutation.tests)
            .collect();
        assert_eq!(tests, ["-p sluicegate-sse", "-p xtask", "-- H1"]);
        assert!(chapter("tests = ''\n[[mutation]]\nguard = 'a'", |_| None).is_err());
        let missing = chapter(CHAPTER, |_| None).unwrap_err();
        assert_eq!(missing, "mutation two: no test program has tests of H1");
    }

    #[test]
    fn a_filter_is_for_the_test_programs() {
        let split = |tests: &str| {
            let mutation = Mutation {
                tests: tests.into(),
                ..mutations().remove(0)
            };
            let (cargo, programs) = mutation.arguments();
            (cargo.join(" "), programs.join(" "))
        };
        assert_eq!(
            split("-p a --lib --test it one"),
            ("-p a --lib --test it".into(), "one".into())
        );
        assert_eq!(
            split("-p a --test it one -- --skip two"),
            ("-p a --test it".into(), "one --skip two".into())
        );
        assert_eq!(
            split("-p a --test it -- b c"),
            ("-p a --test it".into(), "b c".into())
        );
    }

    #[test]
    fn each_problem_of_a_list_is_reported() {
        let found = problems(&mutations());
        assert_eq!(found.len(), 6, "{found:?}");
        assert_eq!(
            found[..4],
            [
                "the name is used twice",
                "`find` and `replace` are equal",
                "`why` or `tests` is empty",
                "H99 is not a row of the list"
            ]
            .map(|problem| format!("mutation one: {problem}"))
        );
        assert!(found[4].contains("times in xtask/Cargo.toml, and must occur once"));
        assert!(found[5].starts_with("mutation two: xtask/none.rs: "));
    }
}
