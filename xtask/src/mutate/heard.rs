//! Parses the results of single tests, as libtest prints them.

use std::collections::BTreeSet;

/// The tests that passed and those that did not.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TestResults {
    pub(super) passed: BTreeSet<String>,
    pub(super) failed: BTreeSet<String>,
    /// Those that have run for more than a minute and have not ended.
    pub(super) running: BTreeSet<String>,
}

impl TestResults {
    pub(super) fn of(log: &str) -> Self {
        let mut results = Self::default();
        for line in log.lines().filter_map(|line| line.strip_prefix("test ")) {
            if let Some(test) = line.strip_suffix(" has been running for over 60 seconds") {
                results.running.insert(test.to_owned());
                continue;
            }
            let Some((test, result)) = line.rsplit_once(" ... ") else { continue };
            let test = test.strip_suffix(" - should panic").unwrap_or(test);
            results.running.remove(test);
            match result {
                "ok" => results.passed.insert(test.to_owned()),
                "FAILED" => results.failed.insert(test.to_owned()),
                _ => false,
            };
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_as_libtest_prints_them() {
        let log = "\
     Running tests/it/main.rs (target/debug/deps/it-1)

running 6 tests
test a::one ... ok
test a::two - should panic ... FAILED
test a::three has been running for over 60 seconds
test a::four has been running for over 60 seconds
test a::five ... ignored, slow
test a::four ... ok
test result: FAILED. 2 passed; 1 failed; 1 ignored
";
        let set = |tests: &[&str]| tests.iter().map(ToString::to_string).collect();
        let expected =
            TestResults { passed: set(&["a::one", "a::four"]), failed: set(&["a::two"]), running: set(&["a::three"]) };
        assert_eq!(TestResults::of(log), expected);
    }
}
