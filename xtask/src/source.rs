//! Rust sources as tokens, without the items that only tests have.

pub(crate) mod modules;

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

pub(crate) use self::modules::{ModulePath, Modules};
use crate::outcome::Outcome;

/// A parsed source file.
pub(crate) struct Source {
    /// The tokens outside of tests. Comments are gone, except for documentation, which is an
    /// attribute.
    pub(crate) tokens: Vec<TokenTree>,
    /// The lines of items that only tests have.
    pub(crate) tests: Vec<RangeInclusive<usize>>,
}

impl Source {
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let tokens: TokenStream = text
            .parse()
            .map_err(|error| format!("this cannot be parsed: {error}"))?;
        let mut source = Self {
            tokens: Vec::new(),
            tests: Vec::new(),
        };
        source.tokens = source.without_tests(&trees(tokens));
        Ok(source)
    }

    fn without_tests(&mut self, tokens: &[TokenTree]) -> Vec<TokenTree> {
        let mut kept = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let item = at + attributes(&tokens[at..]).count() * 2;
            if attributes(&tokens[at..]).any(is_test) {
                let end = item + length(&tokens[item..]);
                let last = tokens[..end]
                    .last()
                    .map_or(0, |token| token.span().end().line);
                self.tests.push(tokens[at].span().start().line..=last);
                at = end;
                continue;
            }
            kept.extend_from_slice(&tokens[at..item]);
            if let Some(token) = tokens.get(item) {
                kept.push(match token {
                    TokenTree::Group(group) => TokenTree::Group(self.group_without_tests(group)),
                    token => token.clone(),
                });
            }
            at = item + 1;
        }
        kept
    }

    fn group_without_tests(&mut self, group: &Group) -> Group {
        let inner = self.without_tests(&trees(group.stream()));
        let mut kept = Group::new(group.delimiter(), inner.into_iter().collect());
        kept.set_span(group.span());
        kept
    }
}

/// The tokens of a stream.
pub(crate) fn trees(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}

/// Returns true if the token is this character.
pub(crate) fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// Returns true for a group in braces.
pub(crate) fn is_braced(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// The attributes at the beginning of `tokens`, of two tokens each.
fn attributes(tokens: &[TokenTree]) -> impl Iterator<Item = &Group> {
    tokens.chunks_exact(2).map_while(|pair| match pair {
        [hash, TokenTree::Group(group)]
            if is_punct(hash, '#') && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group)
        }
        _ => None,
    })
}

/// Returns true for `test`, `tokio::test(…)`, `cfg(test)` and `cfg(all(test, …))`.
fn is_test(attribute: &Group) -> bool {
    match &trees(attribute.stream())[..] {
        [TokenTree::Ident(cfg), TokenTree::Group(condition)] if cfg == "cfg" => {
            needs_test(condition)
        }
        [.., TokenTree::Ident(last)] | [.., TokenTree::Ident(last), TokenTree::Group(_)] => {
            last == "test"
        }
        _ => false,
    }
}

fn needs_test(condition: &Group) -> bool {
    match &trees(condition.stream())[..] {
        [TokenTree::Ident(name)] => name == "test",
        [TokenTree::Ident(all), TokenTree::Group(conditions)] if all == "all" => {
            trees(conditions.stream())
                .iter()
                .any(|token| matches!(token, TokenTree::Ident(name) if name == "test"))
        }
        _ => false,
    }
}

/// The number of tokens of the item, statement, field or variant at the beginning of `tokens`.
fn length(tokens: &[TokenTree]) -> usize {
    let words: Vec<_> = tokens.iter().map_while(word).take(3).collect();
    let is_statement =
        !words.contains(&"fn".to_owned()) && words.iter().any(|word| STATEMENTS.contains(&&**word));
    let is_item = words.iter().any(|word| ITEMS.contains(&&**word));
    let is_last = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => {
            punct.as_char() == ';' || punct.as_char() == ',' && !is_statement && !is_item
        }
        token => is_braced(token) && !is_statement,
    };
    tokens
        .iter()
        .position(is_last)
        .map_or(tokens.len(), |last| last + 1)
}

/// The word or visibility that a token is.
fn word(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
            Some("(…)".to_owned())
        }
        _ => None,
    }
}

/// The words with which items and statements begin that end with a semicolon, whatever braces they
/// contain.
const STATEMENTS: [&str; 5] = ["const", "let", "static", "type", "use"];
/// The words with which items begin that end with a semicolon or with braces.
const ITEMS: [&str; 7] = ["enum", "fn", "impl", "mod", "struct", "trait", "union"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_tests_are_removed() {
        let text = "\
use a::{b, c};
#[cfg(test)]
use d::{e, f};
/// Documentation.
#[cfg(all(test, unix))]
pub(crate) fn only_in_tests<A, B>() {}
#[cfg(not(test))]
struct Kept {
    one: u8,
    #[cfg(test)]
    two: Vec<u8>,
    three: u8,
}
impl Kept {
    #[test]
    fn four() {}
    #[inline]
    fn five() {}
}
#[cfg(test)]
mod tests {
    fn six() {}
}
#[cfg(test)]
const SEVEN: A = A { b: 1 };
const EIGHT: u8 = 1;
";
        let source = Source::parse(text).unwrap();
        let kept = source
            .tokens
            .into_iter()
            .collect::<TokenStream>()
            .to_string();
        let expected = "use a::{b, c}; #[cfg(not(test))] struct Kept { one: u8, three: u8, } \
                        impl Kept { #[inline] fn five() {} } const EIGHT: u8 = 1;";
        assert_eq!(kept, expected.parse::<TokenStream>().unwrap().to_string());
        assert_eq!(
            source.tests,
            [2..=3, 4..=6, 10..=11, 15..=16, 20..=23, 24..=25]
        );
    }

    #[test]
    fn text_that_is_not_rust_is_an_error() {
        assert!(Source::parse("fn f( {}").is_err());
    }
}
