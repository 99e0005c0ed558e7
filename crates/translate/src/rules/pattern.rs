//! Patterns of names of models.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// A pattern of names of models, in which `*` stands for any text. It also matches a name behind the
/// name of a vendor, such as `openai/gpt-5`, or `openai.gpt-5.5` and `us.openai.gpt-oss-120b-1:0` of
/// Bedrock (<https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-openai.html>).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Returns true if it matches the name.
    #[must_use]
    pub fn matches(&self, model: &str) -> bool {
        let own = model.rsplit('/').next().unwrap_or(model);
        [model, own, behind_labels(own)]
            .iter()
            .any(|name| matches(&self.0, name))
    }
}

/// Removes the labels of regions and vendors before the name of a model. Versions have digits.
fn behind_labels(name: &str) -> &str {
    let is_label = |label: &str| {
        label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    match name.split_once('.') {
        Some((label, rest)) if is_label(label) => behind_labels(rest),
        _ => name,
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
            ("gpt-5", "openai.gpt-5", true),
            ("gpt-5.5*", "bedrock/us.openai.gpt-5.5", true),
            ("gpt-5", "gpt-50", false),
            ("5", "gpt-5.5", false),
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
