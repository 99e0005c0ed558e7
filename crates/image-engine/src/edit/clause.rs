//! The clauses of an edit's prompt, and the steps that they ask for.

use std::ops::Range;

use super::filter::{EFFECTS, Filter, MOODS};
use crate::colour::{self, Colour};
use crate::prompt::{Token, contains, tokens};

/// One change of a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Replaces colours with `to`: the colours near `from` if it is known, the subject's colours if
    /// a thing is named, else all colours.
    Recolour {
        from: Option<Colour>,
        to: Colour,
        thing: bool,
    },
    /// Moves all colours a little.
    Shift,
    /// Changes the whole picture alike.
    Filter(Filter),
    /// Removes the background.
    CutBackdrop,
    /// Puts a scene behind.
    Backdrop(String),
    /// Puts a colour behind.
    BackdropColour(Colour),
    /// Paints a frame all around.
    Frame(Colour),
    /// Draws the things of a scene on top.
    Add(String),
    /// Draws a scene in place of the picture.
    Fill(String),
    /// Removes something, and lets its surroundings grow over it: the area of the mask, a colour,
    /// or the foreground.
    Erase { colour: Option<Colour> },
    /// Changes nothing.
    Keep,
}

#[derive(Debug)]
pub(super) struct Word {
    /// In lowercase; [`QUOTE`] for anything in quotes, which is text to be seen, never an
    /// instruction.
    pub(super) text: String,
    /// The place in the prompt.
    at: Range<usize>,
}

/// The words of each clause: they are separated by marks, and where "and" or "then" continues with
/// a verb.
pub(super) fn clauses(prompt: &str) -> Vec<Vec<Word>> {
    let tokens = tokens(prompt);
    let mut clauses = vec![Vec::new()];
    for (i, (token, at)) in tokens.iter().enumerate() {
        let continues =
            matches!(tokens.get(i + 1), Some((Token::Word(next), _)) if contains(VERBS, next));
        let text = match token {
            Token::Word(word) if !(contains("and, then, but", word) && continues) => word.as_str(),
            Token::Quote(_) => QUOTE,
            _ => {
                clauses.push(Vec::new());
                continue;
            }
        };
        clauses.last_mut().into_iter().for_each(|clause| {
            clause.push(Word {
                text: text.to_owned(),
                at: at.clone(),
            });
        });
    }
    clauses.retain(|clause| !clause.is_empty());
    clauses
}

/// The places of a phrase's words, in order and not far from each other.
pub(super) fn find(words: &[&str], phrase: &str) -> Option<Vec<usize>> {
    let follow = |first: usize| {
        let mut found: Vec<usize> = Vec::new();
        for part in phrase.split(' ') {
            let from = found.last().map_or(first, |last| last + 1);
            let reach = if found.is_empty() { 1 } else { LARGEST_GAP + 1 };
            found.push(
                from + words
                    .iter()
                    .skip(from)
                    .take(reach)
                    .position(|word| *word == part)?,
            );
        }
        Some(found)
    };
    (0..words.len()).find_map(follow)
}

pub(super) struct Clause<'a> {
    pub(super) prompt: &'a str,
    pub(super) words: &'a [Word],
    pub(super) masked: bool,
}

impl Clause<'_> {
    /// The steps that it asks for; none where it was not understood.
    pub(super) fn steps(&self) -> Vec<Step> {
        if self.has("keep, leave, return, same") && self.has("is, unchanged, unmodified, identical")
        {
            return vec![Step::Keep];
        }
        if let Some(step) = self.backdrop().or_else(|| self.frame()) {
            return vec![step];
        }
        let mut filters = self.filters(EFFECTS);
        let draws = self.has(ADD) || self.has(REPLACE);
        if filters.is_empty() && (!draws || self.has(TONE)) {
            filters = self.filters(MOODS);
        }
        if !filters.is_empty() {
            return filters;
        }
        let step = self
            .erase()
            .or_else(|| self.change())
            .or_else(|| self.replace());
        step.or_else(|| self.add()).into_iter().collect()
    }

    fn backdrop(&self) -> Option<Step> {
        let at = self.position("background, backdrop")?;
        if self.has(REMOVE) || self.has("transparent, without") {
            return Some(Step::CutBackdrop);
        }
        let verb = self
            .position(MAKE)
            .or_else(|| self.position(REPLACE))
            .or_else(|| self.position(ADD));
        let asked = verb.or_else(|| {
            self.position("with, on, against, before")
                .filter(|word| *word < at)
        })?;
        let with = self.position_after(at, "with, by, to, into");
        let start = with.unwrap_or(asked);
        let behind = &self.words[start + 1..];
        let colour = behind.iter().find_map(Word::colour);
        let is_plain = behind
            .iter()
            .all(|word| contains(FILLERS, &word.text) || word.colour().is_some());
        match colour {
            Some(colour) if is_plain => Some(Step::BackdropColour(colour)),
            colour => {
                (with.is_some() || colour.is_some()).then(|| Step::Backdrop(self.after(start)))
            }
        }
    }

    fn frame(&self) -> Option<Step> {
        self.position("frame, border")?;
        self.position(ADD)
            .or_else(|| self.position(MAKE))
            .or_else(|| self.position("with"))?;
        Some(Step::Frame(
            self.colours().last().copied().unwrap_or(Colour::hex(0)),
        ))
    }

    /// The filters of a table that the clause names; a word serves one of them only.
    fn filters(&self, table: &[(Filter, &str)]) -> Vec<Step> {
        let mut left: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        let mut steps = Vec::new();
        for (filter, phrase) in table
            .iter()
            .flat_map(|(filter, all)| all.split(", ").map(move |one| (filter, one)))
        {
            if let Some(used) = find(&left, phrase) {
                used.into_iter().for_each(|at| left[at] = "");
                steps.push(Step::Filter(*filter));
            }
        }
        steps
    }

    /// "Remove the red ball", but not "add a drop of water".
    fn erase(&self) -> Option<Step> {
        let verb = self.position(REMOVE)?;
        let first = self.position(ADD).is_none_or(|adds| verb < adds);
        first.then(|| Step::Erase {
            colour: self.colours().first().copied(),
        })
    }

    /// "Make the red car blue", "turn the lawn into a lake". "Paint a boat" adds one, "paint the
    /// boat" changes it.
    fn change(&self) -> Option<Step> {
        let verb = self.position(MAKE)?;
        let next = self.words.get(verb + 1);
        if self.words[verb].text == "paint"
            && next.is_some_and(|next| contains(ARTICLES, &next.text))
        {
            return None;
        }
        let colours = self.colours();
        let Some(to) = colours.last().copied() else {
            return Some(self.scene(self.position("into, to")?));
        };
        let from = colours.first().copied().filter(|from| *from != to);
        let is_known = |word: &Word| {
            [MAKE, FILLERS, ALL]
                .iter()
                .any(|list| contains(list, &word.text))
                || word.colour().is_some()
        };
        Some(Step::Recolour {
            from,
            to,
            thing: !self.words.iter().all(is_known),
        })
    }

    /// "Replace the car with a boat", "fill the gap with grass".
    fn replace(&self) -> Option<Step> {
        let verb = self.position(REPLACE)?;
        if let [from, to] = self.colours()[..] {
            return Some(Step::Recolour {
                from: Some(from),
                to,
                thing: false,
            });
        }
        Some(self.scene(self.position_after(verb, "with, by, for").unwrap_or(verb)))
    }

    /// "Add a red sail to the boat".
    fn add(&self) -> Option<Step> {
        let verb = self.position(ADD);
        let mut start = verb
            .map(|verb| verb + 1)
            .or_else(|| self.position(QUOTE).map(|_| 0))?;
        if verb.is_some_and(|verb| self.words[verb].text == "give") {
            // The receiver is there already.
            start = self.position_after(start, ARTICLES).unwrap_or(start);
        }
        let rest = &self.words[start..];
        let end = to_the_receiver(rest).unwrap_or(rest.len());
        let last = rest[..end].last()?;
        Some(Step::Add(
            self.prompt[rest[0].at.start..last.at.end].to_owned(),
        ))
    }

    fn scene(&self, before: usize) -> Step {
        let scene = self.after(before);
        if self.masked {
            Step::Fill(scene)
        } else {
            Step::Add(scene)
        }
    }

    /// The text after a word, up to the end of the clause.
    fn after(&self, word: usize) -> String {
        let end = self.words.last().map_or(0, |word| word.at.end);
        self.prompt
            .get(self.words[word].at.end..end)
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    fn colours(&self) -> Vec<Colour> {
        self.words.iter().filter_map(Word::colour).collect()
    }

    fn has(&self, list: &str) -> bool {
        self.position(list).is_some()
    }

    fn position(&self, list: &str) -> Option<usize> {
        self.position_after(0, list)
    }

    fn position_after(&self, start: usize, list: &str) -> Option<usize> {
        let found = self
            .words
            .get(start..)?
            .iter()
            .position(|word| contains(list, &word.text));
        found.map(|found| start + found)
    }
}

impl Word {
    fn colour(&self) -> Option<Colour> {
        colour::named(&self.text)
    }
}

/// The place where the receiver of something added begins: it is there already. "To the left" is a
/// place.
fn to_the_receiver(words: &[Word]) -> Option<usize> {
    let to = words
        .windows(2)
        .position(|pair| pair[0].text == "to" && pair[1].text == "the")?;
    let place = words
        .get(to + 2)
        .is_some_and(|word| contains(PLACES, &word.text));
    (to > 0 && !place).then_some(to)
}

/// Replaces anything in quotes.
const QUOTE: &str = "\"";
/// The most words between two of a phrase.
const LARGEST_GAP: usize = 3;
/// The words with which another clause begins after "and".
const VERBS: &str = "then, add, put, place, insert, draw, write, include, give, make, turn, change, colour, color, \
    recolour, recolor, paint, dye, tint, convert, set, replace, fill, swap, remove, blur, sharpen, rotate, flip, \
    mirror, invert, brighten, darken, increase, reduce, pixelate, keep";
const ADD: &str = "add, put, place, insert, draw, write, include, give, paint, hang, show";
const MAKE: &str =
    "make, turn, change, colour, color, recolour, recolor, paint, dye, tint, convert, set";
const REMOVE: &str = "remove, delete, erase, drop, cut";
const REPLACE: &str = "replace, fill, swap, exchange, substitute";
/// Words that make "sunset" a light and not a thing.
const TONE: &str = "tint, tone, filter, effect, look, mood, light";
const ARTICLES: &str = "a, an, some, one, two, three, four, five";
const PLACES: &str = "left, right, top, bottom, upper, lower, centre, center, middle, side";
/// Words beside a colour that add nothing to it.
const FILLERS: &str =
    "a, an, the, plain, solid, colour, color, background, backdrop, it, in, on, against, with";
/// Words beside a colour that mean the whole picture.
const ALL: &str = "everything, all, whole, picture, image, photo, this, to, colours, colors, of";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prompt: &str) -> Vec<String> {
        let text = |clause: Vec<Word>| {
            clause
                .into_iter()
                .map(|word| word.text)
                .collect::<Vec<_>>()
                .join(" ")
        };
        clauses(prompt).into_iter().map(text).collect()
    }

    #[test]
    fn clauses_end_at_marks_and_before_verbs() {
        assert_eq!(
            read("Make it black and white, then add a frame"),
            ["make it black and white", "add a frame"]
        );
        assert_eq!(
            read("Don't blur. Make it RED and add 'A, and add B' there"),
            ["don't blur", "make it red", "add \" there"]
        );
        assert_eq!(read(" ...  "), Vec::<String>::new());
    }

    #[test]
    fn word_ranges_match_the_prompt_text() {
        let prompt = "Füge “Öl, bitte” → 'n ice\u{301} d'accord 'x";
        for word in clauses(prompt).into_iter().flatten() {
            let found = &prompt[word.at.clone()];
            assert!(
                word.text == QUOTE || found.to_lowercase() == word.text,
                "{word:?} {found}"
            );
        }
    }
}
