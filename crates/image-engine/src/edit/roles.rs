//! What two references are to each other.

use super::phrases::find;

/// The parts that two references play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roles {
    /// One lies on the other.
    Place {
        /// Which lies on top.
        object: usize,
    },
    /// One stands before the other, as large as it is.
    Before {
        /// Which stands before.
        object: usize,
    },
    /// Both are seen whole.
    SideBySide,
    /// One takes on the colours of the other.
    Style {
        /// Whose colours.
        from: usize,
    },
}

impl Roles {
    /// Reads the words of a prompt.
    pub(crate) fn read(words: &[&str]) -> Self {
        let ordinals = words.iter().enumerate().filter_map(|(at, word)| Some((at, ordinal(word)?)));
        let named: Vec<(usize, usize)> = ordinals.collect();
        let any = |wanted: &[&str]| words.iter().position(|word| wanted.contains(word));
        if SIDE_BY_SIDE.iter().any(|phrase| find(words, phrase).is_some()) {
            return Self::SideBySide;
        }
        if let Some(at) = any(STYLE) {
            let next = named.iter().find(|(named, _)| *named > at);
            return Self::Style { from: next.map_or(1, |(_, which)| *which) };
        }
        if any(&["background", "backdrop"]).is_some() && any(&["replace", "use", "change", "swap", "as"]).is_some() {
            return Self::Before { object: named.last().map_or(0, |(_, which)| 1 - which) };
        }
        let below = ground(words, &named, BELOW).or_else(|| ground(words, &named, WITHIN));
        let alone = if let [(_, only)] = named[..] { only } else { 1 };
        Self::Place { object: below.map_or(alone, |below| 1 - below) }
    }
}

/// The first picture named after one of the words that say what lies below.
fn ground(words: &[&str], named: &[(usize, usize)], below: &[&str]) -> Option<usize> {
    let starts = std::iter::once(0).chain(named.iter().map(|(at, _)| at + 1));
    let mut named = named.iter().zip(starts);
    named.find_map(|((at, which), start)| words[start..*at].iter().any(|word| below.contains(word)).then_some(*which))
}

fn ordinal(word: &str) -> Option<usize> {
    match word {
        "first" | "1st" => Some(0),
        "second" | "2nd" | "other" => Some(1),
        _ => None,
    }
}

const SIDE_BY_SIDE: &[&str] = &["side by side", "next to each other", "collage", "beside each other"];
const STYLE: &[&str] = &["style", "colours", "colors", "palette", "look"];
/// What stands before the name of the picture that lies below.
const BELOW: &[&str] = &["on", "onto", "over", "background", "backdrop"];
/// The same, where nothing clearer is said.
const WITHIN: &[&str] = &["into", "in", "to", "scene"];
