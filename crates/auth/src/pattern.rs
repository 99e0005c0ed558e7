//! Which models a key may use: a model id, in which `*` stands for any run of characters.

use std::fmt;
use std::str::FromStr;

/// A pattern over model ids. Without `*` it names just one.
///
/// ```
/// let pattern: sluicegate_auth::Pattern = "model-5.*".parse()?;
/// assert!(pattern.matches("model-5.5") && pattern.matches("model-5."));
/// assert!(!pattern.matches("model-55"));
/// # Ok::<(), sluicegate_auth::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Box<str>);

/// A pattern that could match nothing: it is empty, or has white space or control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub String);

impl Pattern {
    /// Whether `model` is among those meant. Takes time linear in both lengths.
    #[must_use]
    pub fn matches(&self, model: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else { return *self.0 == *model };
        let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
        let between = model.strip_prefix(head).and_then(|left| left.strip_suffix(tail));
        // The leftmost place of each part leaves the most room for those after it, so no choice is ever taken back.
        let after = |left, part| str::split_once(left, part).map(|(_, right)| right);
        between.and_then(|left| middle.split('*').try_fold(left, after)).is_some()
    }

    /// The pattern as it was written.
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
        write!(f, "{:?} is no model pattern: expected a model id, with '*' for any characters", self.0)
    }
}

impl std::error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_even_an_empty_one() {
        let matches = |pattern: &str, model: &str| pattern.parse::<Pattern>().unwrap().matches(model);
        assert!(matches("alt-flash", "alt-flash") && !matches("alt-flash", "alt-flash-2"));
        assert!(matches("*", "") && matches("*", "anything") && matches("**", "x"));
        assert!(matches("model-*-mini", "model-5-mini") && !matches("model-*-mini", "model-mini"));
        assert!(matches("*5*", "model-5.5") && !matches("*5*", "model-4"));
        assert!(matches("a*b*c", "a-b-b-c") && !matches("a*b*c", "a-c"));
        // Head and tail may not share characters.
        assert!(!matches("ab*ba", "aba") && matches("ab*ba", "abba"));
        assert!(!matches("Model-5", "model-5"));
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_refused() {
        for text in ["", "model 5", "model-5\n"] {
            assert_eq!(text.parse::<Pattern>(), Err(PatternError(text.to_owned())));
        }
    }
}
