//! Reads a prompt from left to right: the words that qualify a noun are collected until the noun
//! comes.

mod position;

use super::lexicon::{
    DETERMINERS, GARMENTS, PARTS, POSITIONS, Position, RELATIONS, Relation, SCALES, STYLES,
    contains, count, meaning, singular,
};
use super::resolve::resolve;
use super::token::{Token, tokens};
use super::{Lettering, MOST_LETTERINGS, MOST_SUBJECTS, Prompt, SQUARE, Subject, TALL, WIDE};
use crate::colour::{self, Colour};
use crate::drawing::{self, Drawing, Place, Thing};

impl Prompt {
    /// Reads a prompt of any content and length.
    pub(crate) fn read(prompt: &str) -> Self {
        let tokens: Vec<Token> = tokens(prompt).into_iter().map(|(token, _)| token).collect();
        let mut reader = Reader {
            tokens: &tokens,
            ..Reader::default()
        };
        reader.result.mood = mood(prompt);
        while reader.at < tokens.len() {
            reader.step();
        }
        reader.end_phrase();
        let mut result = reader.result;
        result.cut_out |= reader.isolated && result.plain.is_none() && result.places.is_empty();
        resolve(&mut result);
        result
    }
}

#[derive(Default)]
struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    result: Prompt,
    pending: Pending,
    last: Last,
    /// Something isolated has nothing behind it, unless the prompt names a backdrop.
    isolated: bool,
}

/// The words that qualify the noun to come.
#[derive(Default)]
struct Pending {
    count: Option<u32>,
    colours: Vec<Colour>,
    shade: Option<fn(Colour) -> Colour>,
    varied: bool,
    scale: Option<f32>,
    position: Option<Position>,
    relation: Option<(Relation, usize)>,
    /// The noun to come is not to be seen.
    not: bool,
    /// The noun to come is held by the last one.
    of: bool,
    /// The word "on" stood before.
    on: bool,
}

/// The last thing that was named: words after it may belong to it.
#[derive(Clone, Copy, Default)]
enum Last {
    #[default]
    Nothing,
    Subject(usize),
    Lettering(usize),
    Backdrop,
    Place(usize),
}

impl Reader<'_> {
    fn step(&mut self) {
        match &self.tokens[self.at] {
            Token::Quote(text) => self.letter(text.clone()),
            Token::Pause => self.pause(),
            Token::Stop => {
                self.end_phrase();
                self.pending = Pending::default();
            }
            Token::Word(word) => {
                let pair = self
                    .tokens
                    .get(self.at + 1)
                    .and_then(Token::word)
                    .map(|next| format!("{word} {next}"));
                if pair.is_some_and(|pair| self.phrase(&pair)) {
                    self.at += 1;
                } else if !(self.grammar(word) || self.quality(word) || self.noun(word)) {
                    // An unknown word ends the phrase after "of".
                    self.pending.of &= matches!(word.as_str(), "fresh" | "ripe" | "hot");
                }
            }
        }
        self.at += 1;
    }

    /// Two words that mean one thing.
    fn phrase(&mut self, pair: &str) -> bool {
        match pair {
            "next to" | "close to" => {}
            "no background" | "without background" => self.result.cut_out = true,
            "cut out" => self.isolated = true,
            "black and" if self.next_word(2) == Some("white") => {
                self.result.style.grey = true;
                self.at += 1;
            }
            _ if self.style(pair) => {}
            _ => {
                if let Some(found) = meaning(RELATIONS, pair) {
                    self.relate(found);
                } else if let Some((found, plural)) = singular(pair, drawing::thing) {
                    self.subject(found, plural);
                } else {
                    return false;
                }
            }
        }
        true
    }

    /// Words that hold a sentence together.
    fn grammar(&mut self, word: &str) -> bool {
        if let Some(found) = meaning(RELATIONS, word) {
            self.close_phrase();
            self.pending.on = word == "on";
            self.relate(found);
            return true;
        }
        match word {
            "no" | "without" | "not" | "never" | "excluding" => {
                self.pending = Pending {
                    not: true,
                    ..Pending::default()
                }
            }
            "but" | "only" | "with" => self.close_phrase(),
            "or" | "nor" | "any" => {}
            "and" => self.pending.not = false,
            "of" => self.pending.of = true,
            word if contains(DETERMINERS, word) => {
                self.close_phrase();
                self.pending.count = count(word);
            }
            _ => return false,
        }
        true
    }

    /// Words that qualify the next noun, or the whole picture.
    fn quality(&mut self, word: &str) -> bool {
        if let Some(found) = colour::shade(word) {
            self.pending.shade = Some(found);
        } else if let Some(found) = self.colour(word) {
            let shade = self.pending.shade.take();
            self.pending
                .colours
                .push(shade.map_or(found, |shade| shade(found)));
        } else if let Some(found) = count(word) {
            self.end_phrase();
            self.pending.count = Some(found);
        } else if let Some(found) = meaning(SCALES, word) {
            self.size(found);
        } else if let Some((across, down)) = meaning(POSITIONS, word) {
            self.place_last(across, down);
        } else {
            return self.style(word) || self.manner(word);
        }
        true
    }

    /// Applies a word that sets the style of the whole picture.
    fn style(&mut self, word: &str) -> bool {
        meaning(STYLES, word)
            .map(|set| set(&mut self.result.style))
            .is_some()
    }

    /// Words for the colours and the format of the picture, and for its backdrop.
    fn manner(&mut self, word: &str) -> bool {
        match word {
            "different" | "various" | "colourful" | "colorful" | "multicoloured"
            | "multicolored" | "assorted" => {
                self.pending.varied = true;
            }
            "colours" | "colors" | "coloured" | "colored" | "colour" | "color" => {
                self.colours_of_last();
            }
            "transparent" => self.result.cut_out |= !self.pending.not && self.is_of_background(),
            "isolated" | "cutout" | "alpha" | "sticker" => self.isolated |= !self.pending.not,
            "background" | "backdrop" => self.backdrop(),
            "foreground" => self.deepen(1),
            "wide" | "panorama" | "panoramic" | "landscape" | "banner" | "widescreen" => {
                self.result.size = Some(WIDE);
                return word != "landscape";
            }
            "portrait" | "poster" | "vertical" => self.result.size = Some(TALL),
            "logo" | "icon" | "avatar" => self.result.size = Some(SQUARE),
            _ => return false,
        }
        true
    }

    fn noun(&mut self, word: &str) -> bool {
        if let Some(found) = drawing::implied_place(word) {
            self.place(found);
        } else if let Some((found, plural)) = singular(word, drawing::thing) {
            self.subject(found, plural);
        } else if let Some((found, _)) = singular(word, drawing::scenery) {
            self.scenery(found);
        } else if singular(word, |noun| {
            (contains(PARTS, noun) || contains(GARMENTS, noun)).then_some(())
        })
        .is_some()
        {
            self.part(word);
        } else {
            return false;
        }
        true
    }

    fn scenery(&mut self, found: &'static Drawing) {
        if found.is("weather") {
            if !self.pending.not && !self.result.weather.contains(&found) {
                self.result.weather.push(found);
            }
            self.pending.relation = None;
        } else if found.is("light") {
            self.result.light = self.result.light.or((!self.pending.not).then_some(found));
            self.pending.relation = None;
        } else {
            self.place(found);
            self.pending = Pending {
                not: self.pending.not,
                ..Pending::default()
            };
        }
    }

    /// A colour, unless the word is a noun here: an orange.
    fn colour(&self, word: &str) -> Option<Colour> {
        let alone = self.next_word(1).is_none_or(|next| {
            meaning(RELATIONS, next).is_some()
                || matches!(next, "and" | "with" | "next" | "that" | "is" | "sitting")
        });
        if word == "orange"
            && alone
            && self.pending.colours.is_empty()
            && self.pending.count.is_some()
        {
            return None;
        }
        Colour::from_css(word).or_else(|| colour::named(word))
    }

    fn subject(&mut self, thing: Thing, plural: bool) {
        let pending = std::mem::take(&mut self.pending);
        let last = self.last_subject().map(|subject| subject.thing);
        if thing.name == "ring" && last.is_some_and(|last| last.name == "planet") {
            // The rings of a planet are part of it.
            return;
        }
        if pending.not {
            self.pending.not = true;
            self.result.absent.push(thing);
            return;
        }
        if let Some(holder) = self
            .last_subject()
            .filter(|last| pending.of && last.thing.is("holds"))
        {
            holder.contents.get_or_insert(thing);
            return;
        }
        if self.result.subjects.len() == MOST_SUBJECTS {
            return;
        }
        let made_up = if plural { 4 } else { 1 };
        let index = self.result.subjects.len();
        self.last = Last::Subject(index);
        self.result.subjects.push(Subject {
            thing,
            count: pending
                .count
                .filter(|count| !plural || *count > 1)
                .unwrap_or(made_up),
            counted: pending.count.is_some(),
            colours: pending.colours,
            varied: pending.varied,
            accent: None,
            scale: pending.scale.unwrap_or(1.0),
            position: pending.position,
            relation: None,
            contents: None,
        });
        if let Some((relation, from)) = pending.relation {
            // "A over B" places A.
            self.result.subjects[from]
                .relation
                .get_or_insert((relation, index));
        }
    }

    fn place(&mut self, place: Place) {
        if self.pending.not || self.result.has(place.name) || self.result.places.len() == 8 {
            return;
        }
        self.last = Last::Place(self.result.places.len());
        self.result
            .places
            .push((place, self.pending.colours.first().copied()));
        self.pending.colours.clear();
    }

    fn last_subject(&mut self) -> Option<&mut Subject> {
        if let Last::Subject(of) = self.last {
            self.result.subjects.get_mut(of)
        } else {
            None
        }
    }

    fn part(&mut self, word: &str) {
        let colour = self.pending.colours.first().copied();
        let Some(subject) = self.last_subject() else {
            return;
        };
        if contains(GARMENTS, word) {
            subject
                .colours
                .extend(colour.filter(|_| subject.colours.is_empty()));
        } else {
            subject.accent = subject.accent.or(colour);
        }
        self.pending = Pending::default();
    }

    fn letter(&mut self, text: String) {
        if text.is_empty() || self.result.letterings.len() == MOST_LETTERINGS {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        self.last = Last::Lettering(self.result.letterings.len());
        self.result.letterings.push(Lettering {
            text,
            colour: pending.colours.first().copied(),
            position: pending.position,
        });
    }

    fn backdrop(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let colour = pending.colours.first().copied();
        if pending.not {
            self.result.cut_out = true;
        } else if colour.is_none() && pending.relation.is_some() {
            self.deepen(-1);
        } else {
            self.result.plain = colour.or(self.result.plain);
            self.last = Last::Backdrop;
        }
    }

    /// Tests whether "transparent" qualifies the background, and not a glass.
    fn is_of_background(&self) -> bool {
        let before = self.tokens[..self.at]
            .iter()
            .rev()
            .take(2)
            .filter_map(Token::word);
        let after = self.next_word(1);
        after.is_none_or(|word| matches!(word, "background" | "backdrop" | "png" | "bg"))
            || before
                .into_iter()
                .any(|word| matches!(word, "background" | "backdrop"))
    }

    fn size(&mut self, scale: f32) {
        let trailing = self.next_word(1).is_none() && self.pending.colours.is_empty();
        match self.last_subject() {
            Some(subject) if trailing => subject.scale = scale,
            _ => self.pending.scale = Some(scale),
        }
    }

    fn colours_of_last(&mut self) {
        let varied = self.pending.varied;
        if let Some(subject) = self.last_subject() {
            subject.varied |= varied;
            self.pending.varied = false;
        }
    }

    fn pause(&mut self) {
        let next = self.next_word(1);
        let adjectives =
            next.is_some_and(|next| colour::shade(next).is_some() || colour::named(next).is_some());
        if self.pending.not {
            self.pending.not = next.is_none_or(|next| !matches!(next, "a" | "an" | "the" | "with"));
        } else if !adjectives {
            self.close_phrase();
        }
    }

    /// Ends a noun phrase, and keeps the words that bind it to the next.
    fn close_phrase(&mut self) {
        let Pending {
            relation,
            position,
            of,
            on,
            ..
        } = self.pending;
        self.end_phrase();
        self.pending = Pending {
            relation,
            position,
            of,
            on,
            ..Pending::default()
        };
    }

    /// Gives the colours that no noun took to the thing that was named last.
    fn end_phrase(&mut self) {
        let colours = std::mem::take(&mut self.pending.colours);
        let Some(first) = colours.first().copied() else {
            return;
        };
        match self.last {
            _ if self.pending.not => {}
            _ if self.pending.on => self.result.plain = self.result.plain.or(Some(first)),
            Last::Subject(of) if self.result.subjects[of].colours.is_empty() => {
                self.result.subjects[of].colours = colours;
            }
            Last::Lettering(of) => self.result.letterings[of].colour = Some(first),
            Last::Backdrop => self.result.plain = Some(first),
            Last::Place(of) if self.result.places[of].1.is_none() => {
                self.result.places[of].1 = Some(first);
            }
            _ => self.result.palette.extend(colours.into_iter().take(8)),
        }
    }

    fn next_word(&self, ahead: usize) -> Option<&str> {
        self.tokens.get(self.at + ahead).and_then(Token::word)
    }
}

/// FNV-1a: small, and the same on every machine.
fn mood(prompt: &str) -> u64 {
    prompt.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
