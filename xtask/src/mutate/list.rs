//! `tests/mutations/*.toml`: the guards that are removed, and the tests that should fail then.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::matching;
use crate::outcome::{At as _, Outcome};
use crate::rows::{self, Tests};
use crate::workspace;

/// The removal of one guard.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutation {
    pub(super) name: String,
    /// The source, from the root of the repository.
    pub(super) file: String,
    /// The text that is replaced, which occurs exactly once; its format does not matter.
    pub(super) find: String,
    pub(super) replace: String,
    /// The description of the guard.
    pub(super) why: String,
    /// The rows of the fault list that it violates: a test of each has to catch it.
    #[serde(default)]
    pub(super) rows: Vec<String>,
    /// The arguments of `cargo test`; a mutation without any has those for the tests of its rows,
    /// or those of its file.
    #[serde(default)]
    pub(super) tests: String,
    /// True if the tests that catch it wait a minute for something that never happens: it is tried
    /// last.
    #[serde(default)]
    pub(super) slow: bool,
    /// The reason why no test can catch it.
    pub(super) survives: Option<String>,
}

impl Mutation {
    /// The position and the program built for it: the closer two mutations are, the less is built
    /// between them.
    pub(super) fn place(&self) -> (&str, String, &str) {
        let package = self.file.split('/').nth(1).unwrap_or_default();
        (package, self.arguments().0.join(" "), &self.file)
    }

    /// Its file with this change.
    ///
    /// # Errors
    ///
    /// If the text that it looks for is not in the file exactly once.
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

    /// The folder of the crate that it changes.
    pub(super) fn area(&self) -> String {
        self.file.split('/').take(2).collect::<Vec<_>>().join("/")
    }

    /// The arguments of cargo for its tests, and those of the test programs.
    pub(super) fn arguments(&self) -> (Vec<&str>, Vec<&str>) {
        let mut cargo = Vec::new();
        let mut programs = Vec::new();
        let mut words = self.tests.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "--" => programs.extend(words.by_ref()),
                "-p" | "--test" | "--features" => {
                    cargo.extend([Some(word), words.next()].into_iter().flatten());
                }
                flag if flag.starts_with('-') => cargo.push(flag),
                filter => programs.push(filter),
            }
        }
        (cargo, programs)
    }

    /// A hash that distinguishes this mutation from any with another change or other tests.
    pub(super) fn mark(&self) -> String {
        let mut hash = Sha256::new();
        for text in [&self.file, &self.find, &self.replace, &self.tests]
            .into_iter()
            .chain(&self.rows)
        {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        hex(&hash.finalize())
    }
}

/// Enough digits of a hash to distinguish all that there is.
pub(super) fn hex(hash: &[u8]) -> String {
    hash[..MARK]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// One file of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chapter {
    tests: String,
    mutation: Vec<Mutation>,
}

/// The whole list, in the order of its files.
pub(super) fn read() -> Outcome<Vec<Mutation>> {
    let mut all = Vec::new();
    let of_rows = Tests::read()?;
    for path in files()? {
        let text = fs::read_to_string(&path).at(&path)?;
        all.extend(
            chapter(&text, |mutation| {
                of_rows.arguments(&mutation.rows, &mutation.file)
            })
            .at(&path)?,
        );
    }
    Ok(all)
}

/// Mutations that do not match the code, or are not described correctly.
pub(super) fn problems(all: &[Mutation]) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for mutation in all {
        let Mutation {
            name,
            file,
            find,
            replace,
            rows,
            ..
        } = mutation;
        let mut report = |what: String| found.push(format!("mutation {name}: {what}"));
        if !names.insert(name) {
            report("the name is used twice".into());
        }
        if find == replace {
            report("`find` and `replace` are equal".into());
        }
        if [Some(&mutation.why), mutation.survives.as_ref()]
            .iter()
            .flatten()
            .any(|text| text.trim().is_empty())
        {
            report("a reason is empty".into());
        }
        rows.iter()
            .filter(|row| !rows::is_row(row))
            .for_each(|row| report(format!("{row} is not a row of the list")));
        if let Err(error) = workspace::read(file).and_then(|text| mutation.applied(&text)) {
            report(error);
        }
    }
    found
}

/// The mutations of a file; `of_rows` are the arguments that run the tests of a mutation's rows.
fn chapter(text: &str, of_rows: impl Fn(&Mutation) -> Option<String>) -> Outcome<Vec<Mutation>> {
    let chapter: Chapter = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut mutations = chapter.mutation;
    for mutation in mutations
        .iter_mut()
        .filter(|mutation| mutation.tests.is_empty())
    {
        mutation.tests = match mutation.rows.as_slice() {
            [] => chapter.tests.clone(),
            rows => of_rows(mutation).ok_or_else(|| {
                format!(
                    "mutation {}: no test program has tests of {}",
                    mutation.name,
                    rows.join(" and ")
                )
            })?,
        };
    }
    Ok(mutations)
}

fn files() -> Outcome<Vec<PathBuf>> {
    let folder = workspace::root().join("tests/mutations");
    let paths =
        fs::read_dir(&folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<_> = paths.at(&folder)?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    paths.sort();
    Ok(paths)
}

/// The number of bytes of a hash that distinguishes a few hundred mutations.
const MARK: usize = 4;

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
    fn a_mutation_has_its_own_tests_or_those_of_its_rows_or_of_its_file() {
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
    fn a_mark_is_of_what_is_changed_and_tested_alone() {
        let one = mutations().remove(0);
        let renamed = Mutation {
            name: "other".into(),
            why: "Otherwise.".into(),
            ..one.clone()
        };
        assert_eq!((renamed.mark(), one.mark().len()), (one.mark(), 2 * MARK));
        for other in [
            Mutation {
                file: "Cargo.toml".into(),
                ..one.clone()
            },
            Mutation {
                find: "name".into(),
                ..one.clone()
            },
            Mutation {
                replace: "n".into(),
                ..one.clone()
            },
            Mutation {
                tests: "-p xtask".into(),
                ..one.clone()
            },
            Mutation {
                rows: vec!["H1".into()],
                ..one.clone()
            },
        ] {
            assert_ne!(other.mark(), one.mark(), "{other:?}");
        }
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
                "a reason is empty",
                "H99 is not a row of the list"
            ]
            .map(|problem| format!("mutation one: {problem}"))
        );
        assert!(found[4].contains("times in xtask/Cargo.toml, and must occur once"));
        assert!(found[5].starts_with("mutation two: xtask/none.rs: "));
    }
}
