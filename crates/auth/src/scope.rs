//! Capabilities that a key can grant, and sets of them.

use std::fmt;
use std::str::FromStr;

/// A capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// The Responses and Chat Completions APIs.
    Text,
    /// The Messages API.
    Messages,
    /// Image generations and edits.
    Images,
}

/// A set of capabilities.
///
/// ```
/// use sluicegate_auth::{Scope, Scopes};
///
/// let scopes: Scopes = "text, images".parse()?;
/// assert!(scopes.contains(Scope::Images) && !scopes.contains(Scope::Messages));
/// assert_eq!(scopes.to_string(), "text,images");
/// # Ok::<(), sluicegate_auth::UnknownScope>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

/// The error for a word that is not the name of a [`Scope`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownScope(pub String);

impl Scope {
    /// All capabilities.
    pub const ALL: [Self; 3] = [Self::Text, Self::Messages, Self::Images];

    /// Returns the name of the capability as used in configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Messages => "messages",
            Self::Images => "images",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Scopes {
    /// Returns true if the set contains `scope`.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Iterates over the capabilities in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL
            .into_iter()
            .filter(move |scope| self.contains(*scope))
    }
}

impl From<Scope> for Scopes {
    fn from(scope: Scope) -> Self {
        Self(scope.bit())
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes
            .into_iter()
            .fold(Self::default(), |all, scope| all.union(scope.into()))
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(word: &str) -> Result<Self, UnknownScope> {
        let known = Self::ALL.into_iter().find(|scope| scope.as_str() == word);
        known.ok_or_else(|| UnknownScope(word.to_owned()))
    }
}

/// Parses a comma-separated list, as given on a command line.
impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(words: &str) -> Result<Self, UnknownScope> {
        words
            .split(',')
            .map(|word| word.trim().parse::<Scope>())
            .collect()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(Scope::as_str).collect();
        f.write_str(&words.join(","))
    }
}

impl fmt::Display for UnknownScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accepted = Scope::ALL.map(Scope::as_str).join("', '");
        write!(
            f,
            "unknown scope {:?}: expected one of '{accepted}'",
            self.0
        )
    }
}

impl std::error::Error for UnknownScope {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_read_back_from_its_text() {
        for bits in 1..8 {
            let scopes = Scopes(bits);
            assert_eq!(scopes.to_string().parse(), Ok(scopes));
            assert_eq!(scopes.iter().collect::<Scopes>(), scopes);
        }
    }

    #[test]
    fn a_scope_may_be_named_twice() {
        assert_eq!("text,images,text".parse(), "text,images".parse::<Scopes>());
    }

    #[test]
    fn an_unknown_word_is_reported_with_the_known_ones() {
        let message = |words: &str| words.parse::<Scopes>().unwrap_err().to_string();
        assert_eq!(
            message("text,image"),
            r#"unknown scope "image": expected one of 'text', 'messages', 'images'"#
        );
        assert_eq!(
            message(""),
            r#"unknown scope "": expected one of 'text', 'messages', 'images'"#
        );
        assert!(message("Text").contains(r#""Text""#));
    }
}
