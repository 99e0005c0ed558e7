//! What one clause of an edit's prompt asks for.

use super::filter::Filter;
use super::phrases::{EFFECTS, MOODS, find};
use super::plan::Step;
use super::words::{QUOTE, Word};
use crate::colour;

/// One clause of a prompt.
pub(super) struct Clause<'a> {
    pub(super) prompt: &'a str,
    pub(super) words: &'a [Word],
    pub(super) masked: bool,
}

impl Clause<'_> {
    /// What it asks for; nothing where it was not understood.
    pub(super) fn steps(&self) -> Vec<Step> {
        if self.any(&["keep", "leave", "return", "same"]) && self.any(&["is", "unchanged", "unmodified", "identical"]) {
            return vec![Step::Keep];
        }
        if let Some(step) = self.backdrop().or_else(|| self.frame()) {
            return vec![step];
        }
        let effects = self.filters(EFFECTS);
        if !effects.is_empty() {
            return effects;
        }
        let draws = self.any(ADD) || self.any(REPLACE);
        let moods = if !draws || self.any(TONE) { self.filters(MOODS) } else { Vec::new() };
        if !moods.is_empty() {
            return moods;
        }
        let step = self.erase().or_else(|| self.recolour()).or_else(|| self.become_());
        step.or_else(|| self.replace()).or_else(|| self.add()).into_iter().collect()
    }

    /// What is to happen to the background.
    fn backdrop(&self) -> Option<Step> {
        let at = self.position(&["background", "backdrop"])?;
        let with = self.words[at..].iter().position(|word| ["with", "by", "to", "into"].contains(&word.text.as_str()));
        if self.any(REMOVE) || self.any(&["transparent", "without"]) {
            return Some(Step::CutBackdrop);
        }
        let verb = self.position(MAKE).or_else(|| self.position(REPLACE)).or_else(|| self.position(ADD));
        let asked = verb.or_else(|| self.position(&["with", "on", "against", "before"]).filter(|word| *word < at))?;
        let start = with.map_or(asked, |with| at + with);
        let scene = self.after(start);
        let behind = &self.words[start + 1..];
        let plain = |word: &&Word| {
            !FILLERS.contains(&word.text.as_str()) && colour::named(&word.text).map(|colour| colour.rgb).is_none()
        };
        match behind.iter().find_map(|word| colour::named(&word.text).map(|colour| colour.rgb)) {
            Some(colour) if behind.iter().filter(plain).count() == 0 => Some(Step::BackdropColour(colour)),
            colour => (with.is_some() || colour.is_some()).then_some(Step::Backdrop(scene)),
        }
    }

    fn frame(&self) -> Option<Step> {
        self.position(&["frame", "border"])?;
        self.position(ADD).or_else(|| self.position(MAKE)).or_else(|| self.position(&["with"]))?;
        Some(Step::Frame(self.colours().last().copied().unwrap_or([0; 3])))
    }

    /// The filters of a table that the clause names; a word serves one of them only.
    fn filters(&self, table: &[(&str, Filter)]) -> Vec<Step> {
        let mut left: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        let mut steps = Vec::new();
        for (phrase, filter) in table {
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
        first.then(|| Step::Erase { colour: self.colours().first().copied() })
    }

    /// "Make the red car blue".
    fn recolour(&self) -> Option<Step> {
        self.changes()?;
        let colours = self.colours();
        let to = *colours.last()?;
        let from = colours.first().copied().filter(|from| *from != to);
        let says = |word: &&Word| {
            let text = word.text.as_str();
            [MAKE, FILLERS, ALL].iter().any(|words| words.contains(&text))
                || colour::named(text).map(|colour| colour.rgb).is_some()
        };
        let thing = self.words.iter().filter(says).count() < self.words.len();
        Some(Step::Recolour { from, to, thing })
    }

    /// "Turn the lawn into a lake".
    fn become_(&self) -> Option<Step> {
        self.changes()?;
        let into = self.position(&["into", "to"])?;
        Some(self.scene(into, self.masked))
    }

    /// The verb that changes what is there. "Paint a boat" adds one, "paint the boat" changes it.
    fn changes(&self) -> Option<usize> {
        let verb = self.position(MAKE)?;
        let next = self.words.get(verb + 1).map_or("", |word| word.text.as_str());
        (self.words[verb].text != "paint" || !ARTICLES.contains(&next)).then_some(verb)
    }

    /// "Replace the car with a boat", "fill the gap with grass".
    fn replace(&self) -> Option<Step> {
        let verb = self.position(REPLACE)?;
        let colours = self.colours();
        if let [from, to] = colours[..] {
            return Some(Step::Recolour { from: Some(from), to, thing: false });
        }
        let with = self.words[verb..].iter().position(|word| ["with", "by", "for"].contains(&word.text.as_str()));
        Some(self.scene(with.map_or(verb, |with| verb + with), self.masked))
    }

    /// "Add a red sail to the boat".
    fn add(&self) -> Option<Step> {
        let verb = self.position(ADD);
        let mut start = verb.map(|verb| verb + 1).or_else(|| self.position(&[QUOTE]).map(|_| 0))?;
        if verb.is_some_and(|verb| self.words[verb].text == "give") {
            // Who is given something is there already.
            let article = |word: &Word| ARTICLES.contains(&word.text.as_str());
            start += self.words[start..].iter().position(article).unwrap_or(0);
        }
        let rest = &self.words[start..];
        let end = self.whereto(rest).unwrap_or(rest.len());
        let (first, last) = (rest.first()?, rest[..end].last()?);
        Some(Step::Add(self.prompt[first.at.start..last.at.end].to_owned()))
    }

    /// Where it is said what something is added to: that is there already. "To the left" is a place.
    fn whereto(&self, words: &[Word]) -> Option<usize> {
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let to = texts.windows(2).position(|pair| pair[0] == "to" && pair[1] == "the")?;
        let place = texts.get(to + 2).is_some_and(|word| PLACES.contains(word));
        (to > 0 && !place).then_some(to)
    }

    fn scene(&self, before: usize, fill: bool) -> Step {
        let scene = self.after(before);
        if fill { Step::Fill(scene) } else { Step::Add(scene) }
    }

    /// What the prompt says after a word, up to the clause's end.
    fn after(&self, word: usize) -> String {
        let end = self.words.last().map_or(0, |word| word.at.end);
        self.prompt.get(self.words[word].at.end..end).unwrap_or_default().trim().to_owned()
    }

    fn colours(&self) -> Vec<[u8; 3]> {
        self.words.iter().filter_map(|word| colour::named(&word.text).map(|colour| colour.rgb)).collect()
    }

    fn any(&self, words: &[&str]) -> bool {
        self.position(words).is_some()
    }

    fn position(&self, words: &[&str]) -> Option<usize> {
        self.words.iter().position(|word| words.contains(&word.text.as_str()))
    }
}

const ADD: &[&str] = &["add", "put", "place", "insert", "draw", "write", "include", "give", "paint", "hang", "show"];
const MAKE: &[&str] =
    &["make", "turn", "change", "colour", "color", "recolour", "recolor", "paint", "dye", "tint", "convert", "set"];
const REMOVE: &[&str] = &["remove", "delete", "erase", "drop", "cut"];
const REPLACE: &[&str] = &["replace", "fill", "swap", "exchange", "substitute"];
/// What makes of "sunset" a light and not a thing.
const TONE: &[&str] = &["tint", "tone", "filter", "effect", "look", "mood", "light"];
const ARTICLES: &[&str] = &["a", "an", "some", "one", "two", "three", "four", "five"];
const PLACES: &[&str] = &["left", "right", "top", "bottom", "upper", "lower", "centre", "center", "middle", "side"];
/// Words beside a colour that say nothing of a scene.
const FILLERS: &[&str] = &[
    "a",
    "an",
    "the",
    "plain",
    "solid",
    "colour",
    "color",
    "background",
    "backdrop",
    "it",
    "in",
    "on",
    "against",
    "with",
];
/// Words beside a colour that mean all there is.
const ALL: &[&str] =
    &["everything", "all", "whole", "picture", "image", "photo", "this", "to", "colours", "colors", "of"];
