//! Parses the output of Rust's test harness.

use std::collections::BTreeSet;

/// The tests that a program has finished, by their paths within it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TestResults {
    pub(crate) passed: BTreeSet<String>,
    pub(crate) failed: BTreeSet<String>,
    /// Those that have run for over a minute and have not ended yet.
    pub(crate) running: BTreeSet<String>,
}

impl TestResults {
    /// Parses the output of a program, which may be incomplete.
    pub(crate) fn of(output: &str) -> Self {
        let mut results = Self::default();
        for rest in output.lines().filter_map(|line| line.strip_prefix("test ")) {
            if let Some(name) = rest.strip_suffix(" has been running for over 60 seconds") {
                results.running.insert(name.to_owned());
            }
            let Some((name, result)) = rest.rsplit_once(" ... ") else {
                continue;
            };
            let name = name.strip_suffix(" - should panic").unwrap_or(name);
            match result {
                "ok" => results.passed.insert(name.to_owned()),
                "FAILED" => results.failed.insert(name.to_owned()),
                _ => continue,
            };
            results.running.remove(name);
        }
        results
    }

    /// The number of tests that have ended.
    pub(crate) fn count(&self) -> usize {
        self.passed.len() + self.failed.len()
    }
}

/// The part of a program's output in which it describes its failures; all of it when there is no
/// such part.
pub(crate) fn failures(output: &str) -> &str {
    output
        .find("\nfailures:\n")
        .map_or(output, |at| &output[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 5 tests
test a::one ... ok
test a::two - should panic ... ok
test b::three ... FAILED
test b::four ... ignored, slow
test b::five has been running for over 60 seconds
test b::six has been running for over 60 seconds
test b::six ... ok

failures:

---- b::three stdout ----
it broke

failures:
    b::three

test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    #[test]
    fn each_result_is_read() {
        let results = TestResults::of(OUTPUT);
        let names = |names: &[&str]| {
            names
                .iter()
                .map(ToString::to_string)
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(results.passed, names(&["a::one", "a::two", "b::six"]));
        assert_eq!(results.failed, names(&["b::three"]));
        assert_eq!(results.running, names(&["b::five"]));
        assert_eq!(results.count(), 4);
    }

    #[test]
    fn failures_are_shown_from_their_beginning() {
        assert!(failures(OUTPUT).starts_with("failures:\n\n---- b::three stdout"));
        assert_eq!(failures("killed"), "killed");
    }
}
