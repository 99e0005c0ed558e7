//! Patterns of names of models.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// A pattern of names of models, in which `*` stands for any text. It also matches a name behind the
/// name of a vendor, such as `openai/gpt-5`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Returns true if it matches the name.
    #[must_use]
    pub fn matches(&self, model: &str) -> bool {
        let own = model.rsplit('/').next().unwrap_or(model);
        matches(&self.0, own) || matches(&self.0, model)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Compares piece by piece: each one behind the one before, the first at the beginning and the last
/// at the end.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        match name.find(piece) {
            Some(at) => name = &name[at + piece.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("gpt-5", "gpt-5", true),
            ("gpt-5", "openai/gpt-5", true),
            ("gpt-5", "gpt-50", false),
            ("gpt-5-*", "gpt-5-mini", true),
            ("gpt-5-*", "gpt-5", false),
            ("*claude-3-7*", "us.anthropic.claude-3-7-sonnet-v1:0", true),
            ("*claude-*-4-5*", "claude-haiku-4-5-20251001", true),
            ("*claude-*-4-5*", "claude-haiku-4-6", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*", "", true),
            ("openrouter/*", "openrouter/auto", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*bc*c", "a-bc", false),
        ] {
            let pattern = Pattern(pattern.to_owned());
            assert_eq!(pattern.matches(name), expected, "{pattern} {name}");
        }
    }
}
