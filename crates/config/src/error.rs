//! The problems of a configuration.

use crate::mask;

/// The problems for which a configuration or a command is refused, one per line. The operator is at
/// fault in most cases and has to correct what each line names; a line about a store, an address or
/// the system may instead mean that these are not available now.
#[derive(Debug)]
pub struct ConfigError(Vec<String>);

impl ConfigError {
    /// Reports these problems.
    #[must_use]
    pub fn new(problems: Vec<String>) -> Self {
        Self(problems.iter().map(|text| mask::problem(text)).collect())
    }

    /// Reports a single problem.
    #[must_use]
    pub fn one(problem: String) -> Self {
        Self::new(vec![problem])
    }

    /// Names the file that has the problems.
    pub(crate) fn within(self, file: &impl std::fmt::Display) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|problem| format!("{file}: {problem}"))
                .collect(),
        )
    }
}

impl From<auth::RingErrors> for ConfigError {
    fn from(found: auth::RingErrors) -> Self {
        Self(found.iter().map(ToString::to_string).collect())
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
