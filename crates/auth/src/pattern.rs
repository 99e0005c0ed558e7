//! Patterns over model ids, in which `*` matches any run of characters.

use std::fmt;
use std::str::FromStr;

/// A pattern over model ids. Without `*` it matches exactly one id.
///
/// ```
/// let pattern: sluicegate_auth::Pattern = "model-5.*".parse()?;
/// assert!(pattern.matches("model-5.5") && pattern.matches("model-5."));
/// assert!(!pattern.matches("model-55"));
/// # Ok::<(), sluicegate_auth::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Box<str>);

/// The error for a pattern that cannot match any model id: empty, or with white space or control
/// characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub String);

impl Pattern {
    /// Returns true if the pattern matches `model`. Takes time linear in both lengths.
    #[must_use]
    pub fn matches(&self, model: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else {
            return *self.0 == *model;
        };
        let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
        let between = model
            .strip_prefix(head)
            .and_then(|left| left.strip_suffix(tail));
        // Matching each part at its leftmost position leaves the most room for later parts, so
        // backtracking is never needed.
        let after = |left, part| str::split_once(left, part).map(|(_, right)| right);
        between
            .and_then(|left| middle.split('*').try_fold(left, after))
            .is_some()
    }

    /// Returns the pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(PatternError(text.to_owned()));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a valid model pattern: expected a model id, with '*' for any characters",
            self.0
        )
    }
}

impl std::error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_even_an_empty_one() {
        let matches =
            |pattern: &str, model: &str| pattern.parse::<Pattern>().unwrap().matches(model);
        assert!(matches("alt-flash", "alt-flash") && !matches("alt-flash", "alt-flash-2"));
        assert!(matches("*", "") && matches("*", "anything") && matches("**", "x"));
        assert!(matches("model-*-mini", "model-5-mini") && !matches("model-*-mini", "model-mini"));
        assert!(matches("*5*", "model-5.5") && !matches("*5*", "model-4"));
        assert!(matches("a*b*c", "a-b-b-c") && !matches("a*b*c", "a-c"));
        // Head and tail must not overlap.
        assert!(!matches("ab*ba", "aba") && matches("ab*ba", "abba"));
        assert!(!matches("Model-5", "model-5"));
    }

    #[test]
    fn a_pattern_keeps_its_text() {
        let pattern: Pattern = "model-5.*".parse().unwrap();
        assert_eq!(pattern.as_str(), "model-5.*");
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_refused() {
        for text in ["", "model 5", "model-5\n"] {
            assert_eq!(text.parse::<Pattern>(), Err(PatternError(text.to_owned())));
        }
    }
}
