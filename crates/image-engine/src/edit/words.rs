//! A prompt cut into clauses of words. What stands in quotes is text to be seen, never an instruction.

use std::ops::Range;

/// A word of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// In small letters; [`QUOTE`] for anything in quotes.
    pub(crate) text: String,
    /// Where it stands.
    pub(crate) at: Range<usize>,
}

/// Stands for anything in quotes.
pub(crate) const QUOTE: &str = "\"";
/// Stands for what ends a clause.
const STOP: &str = ".";

/// The clauses of a prompt: cut at marks, and where "and" or "then" goes on to one of `verbs`.
pub(crate) fn clauses(prompt: &str, verbs: &[&str]) -> Vec<Vec<Word>> {
    let words = words(prompt);
    let mut clauses = vec![Vec::new()];
    for (at, word) in words.iter().enumerate() {
        let goes_on = words.get(at + 1).is_some_and(|next| verbs.contains(&next.text.as_str()) || next.text == "then");
        if word.text == STOP || (["and", "then", "but"].contains(&word.text.as_str()) && goes_on) {
            clauses.push(Vec::new());
        } else if let Some(clause) = clauses.last_mut() {
            clause.push(word.clone());
        }
    }
    clauses.retain(|clause| !clause.is_empty());
    clauses
}

fn words(prompt: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = 0;
    while let Some(first) = prompt[rest..].chars().next() {
        let text = &prompt[rest..];
        let length = if let Some(quoted) = quoted(&prompt[..rest], text) {
            words.push(Word { text: QUOTE.to_owned(), at: rest..rest + quoted });
            quoted
        } else if first.is_alphanumeric() {
            let length = text.find(|c: char| !c.is_alphanumeric() && c != '\'').unwrap_or(text.len());
            words.push(Word { text: text[..length].to_lowercase(), at: rest..rest + length });
            length
        } else {
            if ",.;:!?\n".contains(first) {
                words.push(Word { text: STOP.to_owned(), at: rest..rest + first.len_utf8() });
            }
            first.len_utf8()
        };
        rest += length;
    }
    words
}

/// How long the quoted text is that begins here, marks included. An apostrophe is none: it stands within a word.
fn quoted(before: &str, text: &str) -> Option<usize> {
    let open = text.chars().next()?;
    let close = QUOTES.iter().find(|(mark, _)| *mark == open)?.1;
    if before.ends_with(char::is_alphanumeric) {
        return None;
    }
    let inside = &text[open.len_utf8()..];
    let closes = |at: &usize| !inside[at + close.len_utf8()..].starts_with(char::is_alphanumeric);
    let mut ends = inside.match_indices(close).map(|(at, _)| at).take_while(|at| *at <= LONGEST_QUOTE);
    let end = ends.find(closes)?;
    Some(open.len_utf8() + end + close.len_utf8())
}

/// Bytes of a quoted text: a mark that is never closed must not be sought through the whole prompt.
const LONGEST_QUOTE: usize = 1_000;
const QUOTES: &[(char, char)] = &[('"', '"'), ('\'', '\''), ('\u{201c}', '\u{201d}'), ('\u{2018}', '\u{2019}')];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prompt: &str) -> Vec<String> {
        let text = |clause: Vec<Word>| clause.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" ");
        clauses(prompt, &["add", "make"]).into_iter().map(text).collect()
    }

    #[test]
    fn clauses_end_at_marks_and_before_verbs() {
        assert_eq!(read("Make it black and white, then add a frame"), ["make it black and white", "add a frame"]);
        assert_eq!(
            read("Don't blur. Make it RED and add 'A, and add B' there"),
            ["don't blur", "make it red", "add \" there"]
        );
        assert_eq!(read(" ...  "), Vec::<String>::new());
    }

    #[test]
    fn words_know_where_they_stand_whatever_is_between() {
        let prompt = "Füge “Öl, bitte” → 'n ice\u{301} d'accord 'x";
        for word in clauses(prompt, &[]).into_iter().flatten() {
            let found = &prompt[word.at.clone()];
            assert!(word.text == QUOTE || found.to_lowercase() == word.text, "{word:?} {found}");
        }
    }
}
