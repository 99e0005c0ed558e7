//! Reads a prompt from left to right: what is said of a noun gathers until the noun comes.

mod whereabouts;

use super::count::{count, singulars};
use super::lexicon::{Depth, Place, Position, Relation, Scale, Thing};
use super::settle::settle;
use super::token::{Token, tokens};
use super::{Brief, Lettering, MOST_SUBJECTS, Shape, Subject, words};
use crate::colour::{self, Colour, Shade};

/// Reads a prompt.
pub(super) fn read(prompt: &str) -> Brief {
    let tokens = tokens(prompt);
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        brief: Brief::default(),
        said: Said::default(),
        last: Last::Nothing,
        isolated: false,
    };
    reader.brief.mood = mood(prompt);
    while reader.at < tokens.len() {
        reader.step();
    }
    reader.end_phrase();
    reader.finish()
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    brief: Brief,
    said: Said,
    last: Last,
    /// What is isolated has nothing behind it, unless that is told.
    isolated: bool,
}

/// What was said of the noun to come.
#[derive(Default)]
struct Said {
    count: Option<u32>,
    colours: Vec<Colour>,
    shade: Option<Shade>,
    varied: bool,
    scale: Scale,
    position: Option<Position>,
    relation: Option<(Relation, usize)>,
    /// What follows is not to be seen.
    not: bool,
    /// The noun to come is what the last one holds.
    of: bool,
    /// The word "on" stood before.
    on: bool,
}

/// What was named last, to which what comes after may belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
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
            Token::Stop => self.stop(),
            Token::Word(word) => {
                let pair = self.tokens.get(self.at + 1).and_then(Token::word).map(|next| format!("{word} {next}"));
                if pair.is_some_and(|pair| self.phrase(&pair)) {
                    self.at += 1;
                } else if !(self.grammar(word) || self.quality(word) || self.noun(word)) {
                    self.other(word);
                }
            }
        }
        self.at += 1;
    }

    /// Two words that mean one thing.
    fn phrase(&mut self, pair: &str) -> bool {
        match pair {
            "next to" | "close to" => {}
            "left of" => self.relate(Relation::LeftOf),
            "right of" => self.relate(Relation::RightOf),
            "top of" => self.relate(Relation::On),
            "front of" => self.relate(Relation::Before),
            "no background" | "without background" => self.brief.cut_out = true,
            "cut out" => self.isolated = true,
            "black and" if self.next_word(2) == Some("white") => {
                self.brief.style.grey = true;
                self.at += 1;
            }
            _ if words::apply_style(pair, &mut self.brief.style) => {}
            _ => {
                let Some((found, plural)) = singular(pair, words::thing) else { return false };
                self.subject(found, plural);
            }
        }
        true
    }

    /// Words that hold a sentence together.
    fn grammar(&mut self, word: &str) -> bool {
        if let Some(found) = words::relation(word) {
            self.close_phrase();
            self.said.on = word == "on";
            self.relate(found);
            return true;
        }
        match word {
            "no" | "without" | "not" | "never" | "excluding" => self.said = Said { not: true, ..Said::default() },
            "but" | "only" | "with" => self.close_phrase(),
            "or" | "nor" | "any" => {}
            "and" => self.said.not = false,
            "of" => self.said.of = true,
            word if words::is_determiner(word) => {
                self.close_phrase();
                self.said.count = count(word);
            }
            _ => return false,
        }
        true
    }

    /// Words that say how the next noun is, or how the whole picture is.
    fn quality(&mut self, word: &str) -> bool {
        if let Some(found) = Shade::named(word) {
            self.said.shade = Some(found);
        } else if let Some(found) = self.colour(word) {
            let shade = self.said.shade.take();
            self.said.colours.push(shade.map_or(found, |shade| shade.of(found)));
        } else if let Some(found) = count(word) {
            self.end_phrase();
            self.said.count = Some(found);
        } else if let Some(found) = words::scale(word) {
            self.size(found);
        } else if let Some((across, down)) = words::position(word) {
            self.place_last(across, down);
        } else if words::apply_style(word, &mut self.brief.style) {
        } else {
            return self.manner(word);
        }
        true
    }

    fn manner(&mut self, word: &str) -> bool {
        match word {
            "different" | "various" | "colourful" | "colorful" | "multicoloured" | "multicolored" | "assorted" => {
                self.said.varied = true;
            }
            "colours" | "colors" | "coloured" | "colored" | "colour" | "color" => self.colours_of_last(),
            "transparent" => self.brief.cut_out |= !self.said.not && self.is_of_background(),
            "isolated" | "cutout" | "alpha" | "sticker" => self.isolated |= !self.said.not,
            "background" | "backdrop" => self.backdrop(),
            "foreground" => self.deepen(Depth::Front),
            "wide" | "panorama" | "panoramic" | "landscape" | "banner" | "widescreen" => {
                self.brief.shape = Some(Shape::Wide);
                return word != "landscape";
            }
            "portrait" | "poster" | "vertical" => self.brief.shape = Some(Shape::Tall),
            "logo" | "icon" | "avatar" => self.brief.shape = Some(Shape::Square),
            _ => return false,
        }
        true
    }

    fn noun(&mut self, word: &str) -> bool {
        if let Some(found) = words::weather(word) {
            if !self.said.not && !self.brief.weather.contains(&found) {
                self.brief.weather.push(found);
            }
            self.said.relation = None;
        } else if let Some(found) = words::light(word) {
            self.brief.light = self.brief.light.or((!self.said.not).then_some(found));
            self.said.relation = None;
        } else if let Some(found) = words::placing(word) {
            self.place(found);
        } else if let Some((Thing::Orange, _)) = singular(word, orange) {
            self.subject(Thing::Orange, word != "orange");
        } else if let Some((found, plural)) = singular(word, words::thing) {
            self.subject(found, plural);
        } else if let Some((found, _)) = singular(word, words::place) {
            self.place(found);
            self.said = Said { not: self.said.not, ..Said::default() };
        } else if singular(word, |noun| words::is_part(noun).then_some(())).is_some() {
            self.part(word);
        } else {
            return false;
        }
        true
    }

    /// A word that is not known ends what "of" began, and is otherwise passed over.
    fn other(&mut self, word: &str) {
        if self.said.of && !matches!(word, "fresh" | "ripe" | "hot") {
            self.said.of = false;
        }
    }

    /// A colour, unless the word is the noun here: an orange, a rose.
    fn colour(&self, word: &str) -> Option<Colour> {
        let alone = self.next_word(1).is_none_or(|next| {
            words::relation(next).is_some() || matches!(next, "and" | "with" | "next" | "that" | "is" | "sitting")
        });
        if word == "orange" && alone && self.said.colours.is_empty() && self.said.count.is_some() {
            return None;
        }
        word.strip_prefix('#').and_then(colour::from_hex).or_else(|| colour::named(word))
    }

    fn subject(&mut self, thing: Thing, plural: bool) {
        let said = std::mem::take(&mut self.said);
        if thing == Thing::Ring && self.follows_planet() {
            return;
        }
        if said.not {
            self.said.not = true;
            self.brief.absent.push(thing);
            return;
        }
        if let (true, Last::Subject(holder)) = (said.of, self.last)
            && matches!(self.brief.subjects[holder].thing, Thing::Bowl | Thing::Vase | Thing::Cup)
        {
            self.brief.subjects[holder].contents.get_or_insert(thing);
            return;
        }
        if self.brief.subjects.len() == MOST_SUBJECTS {
            return;
        }
        let made_up = if plural { 4 } else { 1 };
        self.last = Last::Subject(self.brief.subjects.len());
        self.brief.subjects.push(Subject {
            thing,
            count: said.count.filter(|count| !plural || *count > 1).unwrap_or(made_up),
            counted: said.count.is_some(),
            colours: said.colours,
            varied: said.varied,
            accent: None,
            scale: said.scale,
            position: said.position,
            relation: None,
            contents: None,
        });
        self.bind_relation(said.relation);
    }

    fn place(&mut self, place: Place) {
        if self.said.not || self.brief.has(place) || self.brief.places.len() == 8 {
            return;
        }
        self.last = Last::Place(self.brief.places.len());
        self.brief.places.push((place, self.said.colours.first().copied()));
        self.said.colours.clear();
    }

    /// The rings of a planet are part of it.
    fn follows_planet(&self) -> bool {
        matches!(self.last, Last::Subject(of) if self.brief.subjects[of].thing == Thing::Planet)
    }

    fn part(&mut self, word: &str) {
        if let Last::Subject(of) = self.last {
            let colour = self.said.colours.first().copied();
            if words::is_garment(word) {
                let subject = &mut self.brief.subjects[of];
                subject.colours.extend(colour.filter(|_| subject.colours.is_empty()));
                self.said = Said::default();
                return;
            }
            self.brief.subjects[of].accent = self.brief.subjects[of].accent.or(colour);
            self.said = Said::default();
        }
    }

    fn letter(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let said = std::mem::take(&mut self.said);
        self.last = Last::Lettering(self.brief.letterings.len());
        self.brief.letterings.push(Lettering { text, colour: said.colours.first().copied(), position: said.position });
    }

    fn backdrop(&mut self) {
        let said = std::mem::take(&mut self.said);
        if said.not {
            self.brief.cut_out = true;
        } else if let Some(colour) = said.colours.first() {
            self.brief.plain = Some(*colour);
            self.last = Last::Backdrop;
        } else if said.relation.is_some() {
            self.deepen(Depth::Back);
        } else {
            self.last = Last::Backdrop;
        }
    }

    /// Whether "transparent" is said of what is behind, and not of a glass.
    fn is_of_background(&self) -> bool {
        let before = self.tokens[..self.at].iter().rev().take(2).filter_map(Token::word);
        let after = self.next_word(1);
        after.is_none_or(|word| matches!(word, "background" | "backdrop" | "png" | "bg"))
            || before.into_iter().any(|word| matches!(word, "background" | "backdrop"))
    }

    fn size(&mut self, scale: Scale) {
        let trailing = self.next_word(1).is_none() && self.said.colours.is_empty();
        match self.last {
            Last::Subject(of) if trailing => self.brief.subjects[of].scale = scale,
            _ => self.said.scale = scale,
        }
    }

    fn colours_of_last(&mut self) {
        if let (true, Last::Subject(of)) = (self.said.varied, self.last) {
            self.brief.subjects[of].varied = true;
            self.said.varied = false;
        }
    }

    fn pause(&mut self) {
        let adjectives =
            self.next_word(1).is_some_and(|next| Shade::named(next).is_some() || colour::named(next).is_some());
        if !adjectives && !self.said.not {
            self.close_phrase();
        }
        if self.said.not {
            self.said.not = self.next_word(1).is_none_or(|next| !matches!(next, "a" | "an" | "the" | "with"));
        }
    }

    fn stop(&mut self) {
        self.end_phrase();
        self.said = Said::default();
    }

    /// Ends a noun phrase, keeping what binds it to the next.
    fn close_phrase(&mut self) {
        let relation = self.said.relation;
        let (position, of, on) = (self.said.position, self.said.of, self.said.on);
        self.end_phrase();
        self.said = Said { relation, position, of, on, ..Said::default() };
    }

    /// Colours that no noun took belong to what was named last.
    fn end_phrase(&mut self) {
        let colours = std::mem::take(&mut self.said.colours);
        let Some(first) = colours.first().copied() else { return };
        match self.last {
            _ if self.said.not => {}
            _ if self.said.on => self.brief.plain = self.brief.plain.or(Some(first)),
            Last::Subject(of) if self.brief.subjects[of].colours.is_empty() => {
                self.brief.subjects[of].colours = colours;
            }
            Last::Lettering(of) => self.brief.letterings[of].colour = Some(first),
            Last::Backdrop => self.brief.plain = Some(first),
            Last::Place(of) if self.brief.places[of].1.is_none() => self.brief.places[of].1 = Some(first),
            _ => self.brief.palette.extend(colours.into_iter().take(8)),
        }
    }

    fn next_word(&self, ahead: usize) -> Option<&str> {
        self.tokens.get(self.at + ahead).and_then(Token::word)
    }

    fn finish(self) -> Brief {
        let mut brief = self.brief;
        brief.cut_out |= self.isolated && brief.plain.is_none() && brief.places.is_empty();
        settle(&mut brief);
        brief
    }
}

/// The first form of a word that a table knows, and whether it was a plural.
fn singular<T>(word: &str, table: impl Fn(&str) -> Option<T>) -> Option<(T, bool)> {
    singulars(word).into_iter().find_map(|(form, plural)| Some((table(&form)?, plural)))
}

fn orange(noun: &str) -> Option<Thing> {
    (noun == "orange").then_some(Thing::Orange)
}

/// FNV-1a: small, and the same on every machine.
fn mood(prompt: &str) -> u64 {
    prompt.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
