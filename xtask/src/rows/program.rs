//! The arguments of `cargo test` that run exactly the tests of some rows.

use std::collections::BTreeMap;

use super::{Shown, Tests};

impl Tests {
    /// The arguments that run the tests of `rows` in one program. If several programs have such
    /// tests, it is the one with the shortest build: a program of the package with the changed
    /// source file `near` comes first, and one with the embedded model last.
    pub(crate) fn arguments(&self, rows: &[String], near: &str) -> Option<String> {
        let mut programs = BTreeMap::<String, Vec<&Shown>>::new();
        for shown in &self.0 {
            if rows.iter().any(|row| shown.shows(row)) {
                let tests = programs.entry(program(&shown.file)?).or_default();
                tests.push(shown);
            }
        }
        let shows = |tests: &[&Shown], row: &String| tests.iter().any(|shown| shown.shows(row));
        programs.retain(|_, tests| rows.iter().all(|row| shows(tests, row)));
        let near = package(near);
        let is_near = |tests: &[&Shown]| near.is_some() && package(&tests[0].file) == near;
        let (program, tests) = programs
            .iter()
            .min_by_key(|(program, tests)| (!is_near(tests), program.ends_with(EMBEDDED)))?;
        let names: Vec<_> = tests.iter().map(|shown| shown.name.as_str()).collect();
        Some(format!("{program} -- {}", names.join(" ")))
    }
}

/// The test program that contains a source file.
fn program(file: &str) -> Option<String> {
    let bare = "-p sluicegate-server --no-default-features";
    Some(match *file.split('/').collect::<Vec<_>>() {
        ["tests", EMBEDDED, ..] => format!("-p sluicegate-server --test {EMBEDDED}"),
        ["tests", STORED, ..] => format!("{bare} --features sqlite --test {STORED}"),
        ["tests", name, ..] => format!("{bare} --test {name}"),
        ["crates", "server", "src", ..] => format!("{bare} --lib"),
        ["crates", package, "src", ..] => format!("-p sluicegate-{package} --lib"),
        ["crates", package, "tests", name, ..] => {
            let name = name.trim_end_matches(".rs");
            format!("-p sluicegate-{package} --test {name}")
        }
        _ => return None,
    })
}

fn package(file: &str) -> Option<&str> {
    file.strip_prefix("crates/")?.split('/').next()
}

/// The program whose tests use the embedded model.
const EMBEDDED: &str = "black_box";
/// The program whose tests need the store in a file.
const STORED: &str = "state";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::scan;

    fn tests(tests: &[(&str, &str)]) -> Tests {
        let shown = |(file, name): &(&str, &str)| {
            scan::tests(file, &format!("#[test]\nfn {name}() {{}}\n"))
        };
        Tests(tests.iter().flat_map(shown).collect())
    }

    fn rows(rows: &[&str]) -> Vec<String> {
        rows.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_place_of_tests_has_its_program() {
        let programs = [
            (
                "tests/faults/bounds.rs",
                "-p sluicegate-server --no-default-features --test faults",
            ),
            (
                "tests/black_box/auth.rs",
                "-p sluicegate-server --test black_box",
            ),
            (
                "tests/state/kills.rs",
                "-p sluicegate-server --no-default-features --features sqlite --test state",
            ),
            (
                "crates/gateway/src/request/image_urls/tests.rs",
                "-p sluicegate-gateway --lib",
            ),
            ("crates/wire/src/read.rs", "-p sluicegate-wire --lib"),
            (
                "crates/fetch/tests/it/limits.rs",
                "-p sluicegate-fetch --test it",
            ),
            (
                "crates/picture/tests/memory.rs",
                "-p sluicegate-picture --test memory",
            ),
        ];
        for (file, expected) in programs {
            let arguments =
                tests(&[(file, "h01_one")]).arguments(&rows(&["H1"]), "crates/sse/src/lib.rs");
            assert_eq!(arguments, Some(format!("{expected} -- h01_one")), "{file}");
        }
        assert_eq!(
            tests(&[("xtask/src/a.rs", "h01_one")]).arguments(&rows(&["H1"]), ""),
            None
        );
    }

    #[test]
    fn the_nearest_program_with_all_rows_is_chosen() {
        let tests = tests(&[
            ("crates/sse/tests/it/a.rs", "s01_one"),
            ("tests/upstreams/a.rs", "s01_two"),
            ("tests/upstreams/b.rs", "s02_three"),
            ("tests/black_box/b.rs", "s02_four"),
        ]);
        let upstreams = "-p sluicegate-server --no-default-features --test upstreams";
        let arguments = |of: &[&str], near| tests.arguments(&rows(of), near);
        assert_eq!(
            arguments(&["S1"], "crates/sse/src/a.rs").unwrap(),
            "-p sluicegate-sse --test it -- s01_one"
        );
        assert_eq!(
            arguments(&["S1", "S2"], "crates/sse/src/a.rs").unwrap(),
            format!("{upstreams} -- s01_two s02_three")
        );
        assert_eq!(arguments(&["S4"], "crates/sse/src/a.rs"), None);
    }
}
