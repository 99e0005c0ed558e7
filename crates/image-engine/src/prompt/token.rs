//! Splits a prompt into words, quotations and stops.

use std::ops::Range;

use super::LONGEST_LETTERING;

/// The most tokens that are read; the rest of a prompt is ignored.
const MOST_TOKENS: usize = 2_000;

pub(crate) enum Token {
    /// Lowercase, letters and digits, with inner apostrophes and a leading `#` kept.
    Word(String),
    /// The text between quotation marks.
    Quote(String),
    /// A comma, a dash, a bracket.
    Pause,
    /// The end of a sentence.
    Stop,
}

impl Token {
    pub(super) fn word(&self) -> Option<&str> {
        if let Self::Word(word) = self {
            Some(word)
        } else {
            None
        }
    }
}

/// The tokens of a prompt with their places in it. Work and result are bounded whatever the prompt
/// is.
pub(crate) fn tokens(prompt: &str) -> Vec<(Token, Range<usize>)> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let (Some(first), true) = (prompt[at..].chars().next(), tokens.len() < MOST_TOKENS) {
        let rest = &prompt[at..];
        let before = prompt[..at].chars().next_back().unwrap_or(' ');
        let (token, length) = match (quotation(first, before, rest), word_length(rest)) {
            (Some((quoted, length)), _) => (Some(Token::Quote(legible(quoted))), length),
            (None, 0) => (mark(first), first.len_utf8()),
            (None, length) => (
                Some(Token::Word(rest[..length].to_lowercase().replace('’', "'"))),
                length,
            ),
        };
        tokens.extend(token.map(|token| (token, at..at + length)));
        at += length;
    }
    tokens
}

/// The text of the quotation that begins here, and its length with its marks.
///
/// A straight single mark opens only where no word can go on, and closes only where one ends.
fn quotation(first: char, before: char, rest: &str) -> Option<(&str, usize)> {
    let close = match first {
        '"' | '`' => first,
        '\'' if !before.is_alphanumeric() => first,
        '“' | '„' | '”' => '”',
        '«' => '»',
        '‘' if !before.is_alphanumeric() => '’',
        _ => return None,
    };
    let inside = &rest[first.len_utf8()..];
    let ends = |(at, found): &(usize, char)| {
        let after = inside[at + found.len_utf8()..].chars().next();
        let closes =
            *found == close || (first == '„' && *found == '“') || (first == '“' && *found == '"');
        closes && !(matches!(found, '\'' | '’') && after.is_some_and(char::is_alphanumeric))
    };
    let (end, mark) = inside
        .char_indices()
        .take(LONGEST_LETTERING * 2)
        .find(ends)?;
    let quoted = inside[..end].trim();
    (!quoted.is_empty()).then_some((quoted, first.len_utf8() + end + mark.len_utf8()))
}

/// The text without characters that cannot be drawn or put into XML, with single blanks, and cut to
/// a length.
fn legible(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|found| if found.is_control() { ' ' } else { found })
        .collect();
    let one_line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line
        .chars()
        .filter(|found| !is_forbidden(*found))
        .take(LONGEST_LETTERING)
        .collect()
}

/// Tests for a character that XML forbids, or that turns the direction of writing.
const fn is_forbidden(found: char) -> bool {
    matches!(found, '\u{fffe}' | '\u{ffff}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn word_length(rest: &str) -> usize {
    let ends = |(at, found): &(usize, char)| {
        let after = rest[at + found.len_utf8()..].chars().next();
        let inner =
            matches!(found, '\'' | '’') && *at > 0 && after.is_some_and(char::is_alphanumeric);
        let sign = *found == '#' && *at == 0;
        !(found.is_alphanumeric() || inner || sign)
    };
    rest.char_indices()
        .find(ends)
        .map_or(rest.len(), |(at, _)| at)
}

const fn mark(found: char) -> Option<Token> {
    match found {
        ',' | ':' | '(' | ')' | '–' | '—' | '/' => Some(Token::Pause),
        '.' | ';' | '!' | '?' | '\n' => Some(Token::Stop),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotes(prompt: &str) -> Vec<String> {
        let quote = |token| {
            if let (Token::Quote(text), _) = token {
                Some(text)
            } else {
                None
            }
        };
        tokens(prompt).into_iter().filter_map(quote).collect()
    }

    #[test]
    fn quotations_of_every_kind_are_found() {
        for prompt in [
            "say \"HI ho\"",
            "say “HI ho”",
            "say „HI ho“",
            "say «HI ho»",
            "say 'HI ho'",
            "say ‘HI ho’",
            "say `HI ho`",
        ] {
            assert_eq!(quotes(prompt), ["HI ho"], "{prompt}");
        }
    }

    #[test]
    fn an_apostrophe_is_no_quotation() {
        assert_eq!(quotes("the cat's toy and the dog's bone"), [""; 0]);
        assert_eq!(quotes("a sign that says 'DON'T PANIC'"), ["DON'T PANIC"]);
        assert_eq!(quotes("a \"quote without an end"), [""; 0]);
    }

    #[test]
    fn text_becomes_legible() {
        assert_eq!(legible(" a\u{0}b\n\tc\u{202e} "), "a b c");
    }
}
