//! The result of a task.

use std::fmt::Display;
use std::path::Path;

/// The result of a task or a part of it: its error is a complete message for a person.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Puts the path of a file or folder before an error.
pub(crate) trait At<T> {
    fn at(self, path: impl AsRef<Path>) -> Outcome<T>;
}

impl<T, E: Display> At<T> for Result<T, E> {
    fn at(self, path: impl AsRef<Path>) -> Outcome<T> {
        self.map_err(|error| format!("{}: {error}", path.as_ref().display()))
    }
}

/// Fails with all problems that a check has found, if there are any, below a title.
pub(crate) fn no_problems(title: &str, problems: &[String]) -> Outcome {
    match problems {
        [] => Ok(()),
        _ => Err(format!("{title}:\n  {}", problems.join("\n  "))),
    }
}

/// The message for an unknown name, with the known names.
pub(crate) fn unknown(kind: &str, name: &str, known: &[impl AsRef<str>]) -> String {
    let known: Vec<_> = known.iter().map(AsRef::as_ref).collect();
    format!(
        "there is no {kind} {name:?}: there are {}",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_listed_below_the_title() {
        assert_eq!(no_problems("untidy", &[]), Ok(()));
        let problems = ["a.rs:1: a tab".to_owned(), "b.rs:2: a tab".to_owned()];
        assert_eq!(
            no_problems("untidy", &problems),
            Err("untidy:\n  a.rs:1: a tab\n  b.rs:2: a tab".to_owned())
        );
    }
}
