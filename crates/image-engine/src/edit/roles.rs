//! The roles of two references.

use super::clause::find;
use crate::prompt::contains;

/// The roles of two references, which are numbered 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roles {
    /// `object` lies on the other.
    Place { object: usize },
    /// `object` is in front of the other, as large as it is.
    Before { object: usize },
    /// Both are seen whole.
    SideBySide,
    /// The other takes on the colours of `from`.
    Style { from: usize },
}

impl Roles {
    /// Reads the words of a prompt.
    pub(crate) fn read(words: &[&str]) -> Self {
        let ordinals = words.iter().enumerate().filter_map(|(at, word)| Some((at, ordinal(word)?)));
        let named: Vec<(usize, usize)> = ordinals.collect();
        let position = |list: &str| words.iter().position(|word| contains(list, word));
        if SIDE_BY_SIDE.iter().any(|phrase| find(words, phrase).is_some()) {
            return Self::SideBySide;
        }
        if let Some(at) = position("style, colours, colors, palette, look") {
            let next = named.iter().find(|(named, _)| *named > at);
            return Self::Style { from: next.map_or(1, |(_, which)| *which) };
        }
        if position("background, backdrop").is_some() && position("replace, use, change, swap, as").is_some() {
            return Self::Before { object: named.last().map_or(0, |(_, which)| 1 - which) };
        }
        let below = named_after(words, &named, "on, onto, over, background, backdrop");
        let below = below.or_else(|| named_after(words, &named, "into, in, to, scene"));
        let alone = if let [(_, only)] = named[..] { only } else { 1 };
        Self::Place { object: below.map_or(alone, |below| 1 - below) }
    }
}

/// The first picture that is named after one of the words.
fn named_after(words: &[&str], named: &[(usize, usize)], list: &str) -> Option<usize> {
    let starts = std::iter::once(0).chain(named.iter().map(|(at, _)| at + 1));
    let mut named = named.iter().zip(starts);
    named.find_map(|((at, which), start)| words[start..*at].iter().any(|word| contains(list, word)).then_some(*which))
}

fn ordinal(word: &str) -> Option<usize> {
    match word {
        "first" | "1st" => Some(0),
        "second" | "2nd" | "other" => Some(1),
        _ => None,
    }
}

const SIDE_BY_SIDE: [&str; 4] = ["side by side", "next to each other", "collage", "beside each other"];
